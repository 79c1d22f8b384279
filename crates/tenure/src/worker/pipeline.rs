//! The pipeline of one session: a real process, under a watchdog that ends it before its lease is over.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::process::Command;

use jiff::Timestamp;
use rustix::process::Signal;
use tenure_api::{IntentSessionLeases, IntentSessionView};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::identity::WorkerIdentity;
use super::process_record::PipelineProcesses;
use super::settings::Settings;
use super::state_machine_io::WorkerInput;
use super::{pipeline_logs, unsupervised_sessions};
use crate::process_supervisor::{
    CommandExit, DescendantPolicy, StandardStreams, SupervisedProcess, WatchdogReport,
};

/// What a pipeline must not know: who has these can do more than show a channel.
const SECRET_VARIABLES: [&str; 5] =
    ["XG2G_IDEM_SECRET", "TENURE_IDEM_SECRET", "TENURE_ADMIN_TOKEN", "TENURE_TOKEN", "TENURE_LEASE_TOKEN"];

/// What a pipeline knows about its session, and not about one that started the worker.
const SESSION_VARIABLES: [&str; 9] = [
    unsupervised_sessions::VARIABLE,
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
        let log = pipeline_logs::open(&settings.logs, id, command, Timestamp::now())?;
        let standard = StandardStreams([nothing.as_fd(), log.as_fd(), log.as_fd()]);
        let arguments: Vec<OsString> = command.iter().map(OsString::from).collect();
        SupervisedProcess::prepare_with(&arguments, standard, |watchdog| {
            without_secrets(watchdog);
            // So that a worker after this one finds it, even before anybody was told of it.
            watchdog.env("TENURE_SESSION", id).env(unsupervised_sessions::VARIABLE, worker.to_string());
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
