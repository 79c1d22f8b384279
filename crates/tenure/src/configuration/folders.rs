//! Where things belong by the XDG base directory specification.

use std::ffi::OsString;
use std::path::PathBuf;

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
