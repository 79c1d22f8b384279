//! What coding agents may do to files at once: `[files]`.

use tenure_server::FileSettings;

use super::{ConfigurationError, Sources};

/// A day: nobody waits longer for a file.
const MOST_SECONDS: u64 = 86_400;
/// A year: a server that idles longer may as well stay.
const MOST_MINUTES: u64 = 525_600;

/// What was configured.
pub fn files(sources: &Sources) -> Result<FileSettings, ConfigurationError> {
    let usual = FileSettings::default();
    let seconds = |key| {
        let expected = "a number of seconds, from 1 to 86400";
        let found = sources.parse_if(key, expected, |seconds: &u64| (1..=MOST_SECONDS).contains(seconds))?;
        Ok::<_, ConfigurationError>(found.map(|seconds| seconds * 1_000))
    };
    let warn_only = match sources.parse::<Mode>("files.mode", "\"deny\" or \"warn\"")? {
        Some(mode) => mode == Mode::Warn,
        None => usual.warn_only,
    };
    let guarded_shells = match sources.parse::<Shells>("files.shells", "\"any\" or \"guarded\"")? {
        Some(shells) => shells == Shells::Guarded,
        None => usual.guarded_shells,
    };
    let audit = sources.parse("files.audit", "true or false")?.unwrap_or(usual.audit);
    let minutes = sources.parse_if(
        "files.stop_when_idle_minutes",
        "a number of minutes, from 1 to 525600",
        |minutes: &u64| (1..=MOST_MINUTES).contains(minutes),
    )?;
    Ok(FileSettings {
        retry_ms: seconds("files.retry_seconds")?.unwrap_or(usual.retry_ms),
        idle_ms: seconds("files.idle_seconds")?.unwrap_or(usual.idle_ms),
        warn_only,
        guarded_shells,
        audit,
        stop_when_idle_ms: minutes.map(|minutes| minutes * 60_000).or(usual.stop_when_idle_ms),
    })
}

/// What the gate does to whoever wants a file that somebody else has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Deny,
    Warn,
}

impl std::str::FromStr for Mode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "deny" => Ok(Self::Deny),
            "warn" => Ok(Self::Warn),
            _ => Err(()),
        }
    }
}

/// In which shells commands of agents may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shells {
    Any,
    Guarded,
}

impl std::str::FromStr for Shells {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "any" => Ok(Self::Any),
            "guarded" => Ok(Self::Guarded),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::configuration;
    use super::*;

    fn found(file: &str) -> Result<FileSettings, String> {
        configuration(&[], &[], file).map(|found| found.files).map_err(|error| error.to_string())
    }

    // S4-24, S4-33
    #[test]
    fn nobody_says_anything_and_the_retry_is_after_three_minutes_and_idle_is_half_a_minute() {
        let usual = FileSettings {
            retry_ms: 180_000,
            idle_ms: 30_000,
            warn_only: false,
            guarded_shells: false,
            audit: true,
            stop_when_idle_ms: None,
        };
        assert_eq!(found(""), Ok(usual));
    }

    #[test]
    fn what_is_said_counts() {
        let file = "[files]\nretry_seconds = 5\nidle_seconds = 2\nmode = \"warn\"\nshells = \"guarded\"\naudit = false\n\
                    stop_when_idle_minutes = 15\n";
        let said = FileSettings {
            retry_ms: 5_000,
            idle_ms: 2_000,
            warn_only: true,
            guarded_shells: true,
            audit: false,
            stop_when_idle_ms: Some(900_000),
        };
        assert_eq!(found(file), Ok(said));
        assert_eq!(found("[files]\nmode = \"deny\"\n"), Ok(FileSettings::default()));
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_named() {
        for file in [
            "retry_seconds = 0",
            "retry_seconds = 86401",
            "idle_seconds = \"x\"",
            "mode = \"allow\"",
            "shells = \"none\"",
            "audit = \"sometimes\"",
            "stop_when_idle_minutes = 0",
        ] {
            let error = found(&format!("[files]\n{file}\n")).unwrap_err();
            assert!(error.contains("`files."), "{file}: {error}");
        }
    }
}
