//! The pipeline of one session: a real process, under a watchdog that ends it before its lease expires.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use jiff::Timestamp;
use rustix::process::Signal;
use tenure_api::{IntentSessionLeases, IntentSessionView};
use tenure_host::interprocess::CommandExit;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::leader::WorkerIdentity;
use super::orphan_processes;
use super::orphan_processes::PipelineProcesses;
use super::settings::Settings;
use super::state_machine::WorkerInput;
use crate::process_supervisor::{DescendantPolicy, StandardStreams, SupervisedProcess, WatchdogReport};

/// What a pipeline must not know: who has these can do more than show a channel.
const SECRET_VARIABLES: [&str; 5] =
    ["XG2G_IDEM_SECRET", "TENURE_IDEM_SECRET", "TENURE_ADMIN_TOKEN", "TENURE_TOKEN", "TENURE_LEASE_TOKEN"];

/// What a pipeline knows about its session, and not about one that started the worker.
const SESSION_VARIABLES: [&str; 9] = [
    orphan_processes::VARIABLE,
    "TENURE_SESSION",
    "TENURE_LEASE",
    "TENURE_FENCE",
    "TENURE_SLOT",
    "TENURE_SERVICE",
    "TENURE_RECORDING",
    "TENURE_PROFILE",
    "TENURE_PARAMS",
];

#[derive(Debug)]
pub enum PipelineCommand {
    /// It may run until then.
    Extend(u64),
    End,
    Kill,
}

/// A pipeline that is to be started.
pub struct Pipeline {
    pub session: IntentSessionView,
    pub taken: IntentSessionLeases,
    /// Until when, unless it is extended.
    pub valid_until: u64,
}

impl Pipeline {
    /// Starts it, and tells what becomes of it. When this returns, nobody of it is left.
    pub async fn run(
        self,
        settings: &Settings,
        mut orders: UnboundedReceiver<PipelineCommand>,
        input_sender: &UnboundedSender<WorkerInput>,
    ) {
        let id = self.session.session_id.clone();
        let command = self.command(settings);
        let mut guarded = match self.prepare(settings, &command) {
            Ok(guarded) => guarded,
            Err(error) => {
                let why = format!("its log or its watchdog cannot be had: {error}");
                return drop(input_sender.send(WorkerInput::NotStarted(id, why)));
            }
        };
        guarded
            .start(self.valid_until, settings.margins(), DescendantPolicy::EndAll, self.environment())
            .await;
        let (mut has_commands, mut has_lost_watchdog) = (true, false);
        let last = loop {
            let report = tokio::select! {
                report = guarded.next_report() => report,
                order = orders.recv(), if has_commands => {
                    has_commands = order.is_some();
                    match order {
                        Some(PipelineCommand::Extend(until)) => guarded.move_deadline(until).await,
                        Some(PipelineCommand::Kill) => guarded.kill().await,
                        // Nobody is left who would keep its lease.
                        Some(PipelineCommand::End) | None => guarded.terminate().await,
                    }
                    continue;
                }
            };
            match report {
                Some(WatchdogReport::Started(number)) => {
                    let watchdog = i32::try_from(guarded.watchdog_id()).unwrap_or(0);
                    let process = PipelineProcesses::capture(number, watchdog).to_string();
                    let _ = input_sender.send(WorkerInput::Started(id.clone(), process));
                }
                Some(WatchdogReport::Stopped(_)) => {}
                Some(WatchdogReport::Ending) => drop(input_sender.send(WorkerInput::Ending(id.clone()))),
                Some(WatchdogReport::NotStarted { error }) => {
                    let error =
                        error.map_or_else(|| io::ErrorKind::Other.into(), io::Error::from_raw_os_error);
                    break WorkerInput::NotStarted(id, format!("{} cannot be run: {error}", command[0]));
                }
                Some(WatchdogReport::TooLate) => break WorkerInput::TooLate(id),
                Some(WatchdogReport::Ended(ended)) => break WorkerInput::Gone(id, ended),
                None => {
                    has_lost_watchdog = true;
                    break WorkerInput::Gone(id, CommandExit::Signal(Signal::KILL.as_raw()));
                }
            }
        };
        // Mostly it takes a moment, but a moment is too long for whoever shares this thread.
        let end = move || {
            if has_lost_watchdog {
                guarded.kill_without_watchdog();
            }
            guarded.close();
        };
        let _ = tokio::task::spawn_blocking(end).await;
        let _ = input_sender.send(last);
    }

    fn command(&self, settings: &Settings) -> Vec<String> {
        let of_recordings = settings.recording_command.as_ref();
        let template = of_recordings.filter(|_| self.session.recording_id.is_some());
        template.unwrap_or(&settings.command).fill(&self.session, self.taken.slot)
    }

    fn prepare(&self, settings: &Settings, command: &[String]) -> io::Result<SupervisedProcess> {
        let (id, worker) = (&self.session.session_id, WorkerIdentity::current()?);
        let nothing = File::open("/dev/null")?;
        let log = open(&settings.logs, id, command, Timestamp::now())?;
        let standard = StandardStreams([nothing.as_fd(), log.as_fd(), log.as_fd()]);
        let arguments: Vec<OsString> = command.iter().map(OsString::from).collect();
        SupervisedProcess::prepare_with(&arguments, standard, |watchdog| {
            without_secrets(watchdog);
            // So that a worker after this one finds it, even before anybody was told of it.
            watchdog.env("TENURE_SESSION", id).env(orphan_processes::VARIABLE, worker.to_string());
        })
    }

    fn environment(&self) -> Vec<(String, String)> {
        let IntentSessionView { service_ref, recording_id, profile_id, params, .. } = &self.session;
        let params = params.as_ref().map(|params| serde_json::Value::Object(params.clone()).to_string());
        let variables = [
            ("TENURE_SESSION", Some(self.session.session_id.clone())),
            // The tuner's where there is one: that is what could be used twice.
            ("TENURE_LEASE", self.taken.leases.last().cloned()),
            ("TENURE_FENCE", self.taken.fences.last().map(u64::to_string)),
            ("TENURE_SLOT", self.taken.slot.map(|slot| slot.to_string())),
            ("TENURE_SERVICE", service_ref.clone()),
            ("TENURE_RECORDING", recording_id.clone()),
            ("TENURE_PROFILE", Some(profile_id.clone())),
            ("TENURE_PARAMS", Some(params.unwrap_or_default())),
        ];
        variables.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// The environment of this process, without what a pipeline must not know.
fn without_secrets(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let is_secret = SECRET_VARIABLES.iter().any(|secret| text.starts_with(secret));
        if is_secret || SESSION_VARIABLES.contains(&text.as_ref()) {
            command.env_remove(name);
        }
    }
}

/// How the name of every log ends.
const EXTENSION: &str = "log";

/// Opens the log of a session, to be added to, and says in it what is started.
pub fn open(folder: &Path, session: &str, command: &[String], at: Timestamp) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut log = OpenOptions::new().append(true).create(true).mode(0o600).open(path(folder, session))?;
    // As JSON, so that it is clear where an argument begins and ends.
    let command = serde_json::to_string(command)?;
    log.write_all(format!("tenure: {at:.3}: session {session} starts {command}\n").as_bytes())?;
    Ok(log)
}

/// Removes the oldest logs, so that no more than `kept` are left; never one of a session that goes on.
pub fn prune(folder: &Path, kept: usize, live: &HashSet<String>) -> io::Result<()> {
    let live: HashSet<PathBuf> = live.iter().map(|session| path(folder, session)).collect();
    let mut logs = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?.flatten(),
    };
    for entry in entries {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == EXTENSION) && !live.contains(&path) {
            logs.push((entry.metadata()?.modified()?, path));
        }
    }
    logs.sort();
    let too_many = (logs.len() + live.len()).saturating_sub(kept);
    for (_, path) in logs.into_iter().take(too_many) {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Where the log of a session is. The server chose the name, and it may be anybody's server.
fn path(folder: &Path, session: &str) -> PathBuf {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    let name: String = session.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    folder.join(format!("{name}.{EXTENSION}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn log_starts_with_the_command_and_is_private_to_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("a/b");
        let command = ["sh".to_owned(), "-c".to_owned(), "echo 'a b'".to_owned()];
        let mut log = open(&logs, "s-1", &command, Timestamp::UNIX_EPOCH).unwrap();
        log.write_all(b"said\n").unwrap();
        let path = logs.join("s-1.log");
        let text = fs::read_to_string(&path).unwrap();
        let first = r#"tenure: 1970-01-01T00:00:00.000Z: session s-1 starts ["sh","-c","echo 'a b'"]"#;
        assert_eq!(text, format!("{first}\nsaid\n"));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&logs), mode(&path)), (0o700, 0o600));
    }

    #[test]
    fn session_name_cannot_leave_the_log_directory() {
        assert_eq!(path(Path::new("/logs"), "../../etc/x"), Path::new("/logs/______etc_x.log"));
    }

    #[test]
    fn oldest_logs_are_pruned_except_those_of_live_sessions() {
        let folder = tempfile::tempdir().unwrap();
        for age in 0..5_u64 {
            let file = File::create(folder.path().join(format!("s{age}.log"))).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(100 - age)).unwrap();
        }
        File::create(folder.path().join("other.txt")).unwrap();
        prune(folder.path(), 3, &HashSet::from(["s4".to_owned()])).unwrap();
        let mut remaining: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        remaining.sort();
        assert_eq!(remaining, ["other.txt", "s0.log", "s1.log", "s4.log"]);
    }
}
