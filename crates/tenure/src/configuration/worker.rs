//! The worker: what of `[intents]` is its own, and `[intents.pipeline]`.

use std::path::{Path, PathBuf};

use super::sources::Value;
use super::{ConfigurationError, Sources};
use crate::worker::{InvalidTemplate, Settings, Template};

const COMMAND: &str = "intents.pipeline.command";
const RECORDING_COMMAND: &str = "intents.pipeline.recording_command";
/// What is usual where nothing was said.
const USUAL_TTL_MS: u64 = 30_000;
const USUAL_GRACE_MS: u64 = 5_000;
const USUAL_LOGS: usize = 200;
/// From a second to a day, as all leases.
const TTL_MS: std::ops::RangeInclusive<u64> = 1_000..=86_400_000;

/// The worker, where there is something that it could start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerConfiguration {
    /// What it needs to know.
    pub settings: Settings,
    /// Whether the server is to run it.
    pub is_in_server: bool,
}

/// What was configured. Without a command there is no worker.
pub fn worker(sources: &Sources, data: &Path) -> Result<Option<WorkerConfiguration>, ConfigurationError> {
    let is_in_server = sources.switch("intents.worker")?;
    let command = template(sources, COMMAND)?;
    let recording_command = template(sources, RECORDING_COMMAND)?;
    let tuners = sources.parse_if("intents.tuners", "a number of tuners, from 0 to 64", |tuners| {
        *tuners <= Settings::MOST_TUNERS
    })?;
    let ttl_ms = ttl_ms(sources)?;
    let expected = "a number of milliseconds, 1 at least";
    let renew_every_ms = sources.parse_if("intents.renew_every_ms", expected, |every| *every > 0)?;
    let renew_every_ms = renew_every_ms.unwrap_or(ttl_ms / 3);
    let stop_grace_ms = sources.parse("intents.stop_grace_ms", "a number of milliseconds")?;
    let stop_grace_ms: u64 = stop_grace_ms.unwrap_or(USUAL_GRACE_MS.min(ttl_ms / 4));
    // What is left is for a server that is slow, and for processes that take their time to go.
    if renew_every_ms.saturating_add(stop_grace_ms) > ttl_ms / 4 * 3 {
        return Err(ConfigurationError::RenewedTooLate {
            every: renew_every_ms,
            grace: stop_grace_ms,
            ttl: ttl_ms,
        });
    }
    let logs = sources.get("intents.logs").map(|value| PathBuf::from(value.text));
    let logs_kept = sources.parse("intents.logs_kept", "a number of files")?;
    let Some(command) = command else {
        // It would wait for sessions that it cannot start.
        let given = [
            ("intents.worker", is_in_server == Some(true)),
            (RECORDING_COMMAND, recording_command.is_some()),
        ];
        return match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((given, _)) => Err(ConfigurationError::NoPipeline { given }),
            None => Ok(None),
        };
    };
    let settings = Settings {
        tuners: tuners.unwrap_or(0),
        ttl_ms,
        renew_every_ms,
        stop_grace_ms,
        logs: logs.unwrap_or_else(|| data.join("sessions")),
        logs_kept: logs_kept.unwrap_or(USUAL_LOGS),
        command,
        recording_command,
    };
    Ok(Some(WorkerConfiguration { settings, is_in_server: is_in_server.unwrap_or(true) }))
}

/// How long the leases of a session last.
pub fn ttl_ms(sources: &Sources) -> Result<u64, ConfigurationError> {
    let expected = "a number of milliseconds, from 1000 to 86400000";
    let ttl_ms = sources.parse_if("intents.ttl_ms", expected, |ttl| TTL_MS.contains(ttl))?;
    Ok(ttl_ms.unwrap_or(USUAL_TTL_MS))
}

/// A command: a list in a file, and the same as JSON in the environment, where arguments may hold anything.
fn template(sources: &Sources, key: &'static str) -> Result<Option<Template>, ConfigurationError> {
    let Some(Value { text, origin }) = sources.get(key) else { return Ok(None) };
    let arguments = serde_json::from_str::<Vec<String>>(&text.to_string_lossy());
    let template =
        arguments.map_err(|_| InvalidTemplate::NotAList).and_then(|arguments| Template::parse(&arguments));
    template.map(Some).map_err(|reason| ConfigurationError::Template { origin, reason })
}

#[cfg(test)]
mod tests {
    use super::super::tests::configuration;
    use super::*;

    const PIPELINE: &str =
        "[intents.pipeline]\ncommand = ['ffmpeg', '-vf', 'scale=1:2,fps=3', '{service}']\n";

    fn of(file: &str) -> Result<Option<WorkerConfiguration>, String> {
        configuration(&[], &[], file).map(|found| found.worker).map_err(|error| error.to_string())
    }

    #[test]
    fn a_command_makes_a_worker_in_the_server_and_without_one_there_is_none() {
        assert_eq!(of(""), Ok(None));
        assert_eq!(of("[intents]\ntuners = 2"), Ok(None));
        let found = of(PIPELINE).unwrap().unwrap();
        assert!(found.is_in_server);
        let Settings { tuners, ttl_ms, renew_every_ms, stop_grace_ms, logs, logs_kept, .. } = found.settings;
        assert_eq!((tuners, ttl_ms, renew_every_ms, stop_grace_ms), (0, 30_000, 10_000, 5_000));
        assert_eq!(
            (logs.as_path(), logs_kept),
            (Path::new("/home/somebody/.local/state/tenure/sessions"), 200)
        );
        let arguments = ["ffmpeg", "-vf", "scale=1:2,fps=3", "{service}"].map(str::to_owned);
        assert_eq!(found.settings.command, Template::parse(&arguments).unwrap(), "commas and all");
        let elsewhere = of(&format!("[intents]\nworker = false\ntuners = 64\n{PIPELINE}")).unwrap().unwrap();
        assert!(!elsewhere.is_in_server);
        assert_eq!(elsewhere.settings.tuners, 64);
    }

    #[test]
    fn the_environment_says_a_command_as_json() {
        let variable = ("TENURE_INTENTS_PIPELINE_COMMAND", r#"["sh", "-c", "echo a, b"]"#);
        let found = configuration(&[], &[variable], "").unwrap().worker.unwrap();
        let arguments = ["sh", "-c", "echo a, b"].map(str::to_owned);
        assert_eq!(found.settings.command, Template::parse(&arguments).unwrap());
    }

    #[test]
    fn a_command_that_is_none_is_not_repeated_because_it_may_hold_a_password() {
        let text = "ffmpeg -i http://root:hunter2@box/{service}";
        let variable = ("TENURE_INTENTS_PIPELINE_COMMAND", text);
        let of_variable = configuration(&[], &[variable], "").unwrap_err().to_string();
        let of_file = of(&format!("[intents.pipeline]\ncommand = '{text}'")).unwrap_err();
        for refused in [of_variable, of_file] {
            assert!(refused.contains("a program with its arguments"), "{refused}");
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn short_leases_have_short_times_for_everything() {
        let found = of(&format!("[intents]\nttl_ms = 2000\n{PIPELINE}")).unwrap().unwrap().settings;
        assert_eq!((found.renew_every_ms, found.stop_grace_ms), (666, 500));
    }

    #[test]
    fn what_a_worker_could_not_do_is_refused() {
        for (intents, said) in [
            ("tuners = 65", "`intents.tuners` in "),
            ("tuners = -1", "`intents.tuners` in "),
            ("ttl_ms = 999", "`intents.ttl_ms` in "),
            ("renew_every_ms = 0", "`intents.renew_every_ms` in "),
            ("stop_grace_ms = 20000", "`intents.stop_grace_ms` is 20000"),
            ("renew_every_ms = 25000", "`intents.renew_every_ms` is 25000"),
            ("worker = 'maybe'", "`intents.worker` in "),
        ] {
            let refused = of(&format!("[intents]\n{intents}\n{PIPELINE}")).unwrap_err();
            assert!(refused.contains(said), "{intents}: {refused}");
        }
        for (file, said) in [
            ("[intents]\nworker = true", "`intents.worker`"),
            ("[intents.pipeline]\nrecording_command = ['a']", "`intents.pipeline.recording_command`"),
            ("[intents.pipeline]\ncommand = []", "names no program"),
            ("[intents.pipeline]\ncommand = ['a', '{sevice}']", "{sevice}"),
            ("[intents.pipeline]\ncommand = 'a b'", "a program with its arguments"),
            ("[intents.pipeline]\ncommand = ['a', ['b']]", "a program with its arguments"),
        ] {
            let refused = of(file).unwrap_err();
            assert!(refused.contains(said), "{file}: {refused}");
        }
    }
}
