//! Folders of the user, and secrets in files.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use tenure_server::{IntentSecret, IntentSecrets};
use zeroize::Zeroizing;

use super::ConfigurationError;

/// The folders of this user. Nothing where the environment does not say.
#[derive(Debug, Clone, Default)]
pub struct Folders {
    config: Option<PathBuf>,
    state: Option<PathBuf>,
    runtime: Option<PathBuf>,
}

impl Folders {
    /// Reads `XDG_CONFIG_HOME`, `XDG_STATE_HOME`, `XDG_RUNTIME_DIR` and `HOME`.
    pub fn new(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        // The specification: a relative path is as good as none.
        let folder = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let below_home = |path: &str| folder("HOME").map(|home| home.join(path));
        Self {
            config: folder("XDG_CONFIG_HOME").or_else(|| below_home(".config")),
            state: folder("XDG_STATE_HOME").or_else(|| below_home(".local/state")),
            runtime: folder("XDG_RUNTIME_DIR"),
        }
    }

    /// The configuration file that is read if it is there and nobody named another.
    pub fn config_file(&self) -> Option<PathBuf> {
        self.config.as_ref().map(|folder| folder.join("tenure/config.toml"))
    }

    /// Where the local socket is if nobody chose another place: where clients look for it too.
    pub fn socket(&self) -> PathBuf {
        let in_temporary = || PathBuf::from(format!("/tmp/tenure-{}", rustix::process::geteuid().as_raw()));
        let folder = self.runtime.as_ref().map(|folder| folder.join("tenure"));
        folder.unwrap_or_else(in_temporary).join("tenure.sock")
    }

    /// Where state belongs.
    pub fn state(&self, what: &str, remedy: &str) -> Result<&PathBuf, ConfigurationError> {
        self.state.as_ref().ok_or_else(|| {
            ConfigurationError::new(format!(
                "neither XDG_STATE_HOME nor HOME says where {what} belongs; set one of them, or {remedy}"
            ))
        })
    }
}

/// The variables of the secret, and of the one before it. Either name of each will do.
const CURRENT: [&str; 2] = ["XG2G_IDEM_SECRET", "TENURE_IDEM_SECRET"];
const PREVIOUS: [&str; 2] = ["XG2G_IDEM_SECRET_PREVIOUS", "TENURE_IDEM_SECRET_PREVIOUS"];

/// What a server without a secret says.
pub const NO_SECRET: &str = "tenure: WARNING: neither XG2G_IDEM_SECRET nor TENURE_IDEM_SECRET is set. The keys of intents are \
                             made with a secret of this process alone: after a restart, an intent that was accepted \
                             before is not found again and becomes another session. Set it to 32 random bytes as text: \
                             `openssl rand -hex 32`.\n";

/// The secrets, if there are any. No error repeats them.
pub fn intent_secrets(
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Option<IntentSecrets>, ConfigurationError> {
    let (current, previous) = (secret(&variable, CURRENT)?, secret(&variable, PREVIOUS)?);
    match (current, previous) {
        (Some(current), previous) => Ok(Some(IntentSecrets { current, previous })),
        (None, Some(_)) => Err(ConfigurationError::incomplete_pair(PREVIOUS[0], CURRENT[0])),
        (None, None) => Ok(None),
    }
}

fn secret(
    variable: &impl Fn(&str) -> Option<OsString>,
    names: [&'static str; 2],
) -> Result<Option<IntentSecret>, ConfigurationError> {
    let [first, second] = names.map(|name| Some((name, Zeroizing::new(variable(name)?.into_vec()))));
    let (name, bytes) = match (first, second) {
        (Some((_, one)), Some((_, other))) if one != other => {
            let [first, second] = names;
            let message = format!("{first} and {second} are set and differ; leave one of them out");
            return Err(ConfigurationError::new(message));
        }
        (Some(named_secret), _) | (None, Some(named_secret)) => named_secret,
        (None, None) => return Ok(None),
    };
    let made = IntentSecret::new(&*bytes);
    made.map(Some).map_err(|error| ConfigurationError::because(format!("{name} cannot be used"), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Result<Option<bool>, String> {
        let variable = |name: &str| {
            variables.iter().find(|(found, _)| *found == name).map(|(_, value)| OsString::from(value))
        };
        let secrets = intent_secrets(variable).map_err(|error| error.to_string())?;
        Ok(secrets.map(|secrets| secrets.previous.is_some()))
    }

    // S1-45
    #[test]
    fn intent_secrets_are_read_under_either_variable_name() {
        assert_eq!(found(&[]), Ok(None));
        assert_eq!(found(&[("XG2G_IDEM_SECRET", "a")]), Ok(Some(false)));
        assert_eq!(found(&[("TENURE_IDEM_SECRET", "a")]), Ok(Some(false)));
        let both = [("XG2G_IDEM_SECRET", "a"), ("TENURE_IDEM_SECRET", "a")];
        assert_eq!(found(&both), Ok(Some(false)));
        let rotated = [("TENURE_IDEM_SECRET", "b"), ("XG2G_IDEM_SECRET_PREVIOUS", "a")];
        assert_eq!(found(&rotated), Ok(Some(true)));
    }

    #[test]
    fn ambiguous_intent_secrets_are_rejected_without_repeating_them() {
        for variables in [
            &[("XG2G_IDEM_SECRET", "first-one"), ("TENURE_IDEM_SECRET", "first-two")][..],
            &[("XG2G_IDEM_SECRET", "")],
            &[("XG2G_IDEM_SECRET_PREVIOUS", "first-one")],
            &[
                ("XG2G_IDEM_SECRET", "x"),
                ("XG2G_IDEM_SECRET_PREVIOUS", "first-one"),
                ("TENURE_IDEM_SECRET_PREVIOUS", "first-two"),
            ],
        ] {
            let refused = found(variables).unwrap_err();
            assert!(refused.contains("IDEM_SECRET") && !refused.contains("first-"), "{refused}");
        }
    }
}
