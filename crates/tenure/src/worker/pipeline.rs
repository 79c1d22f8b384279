//! The pipeline of one session: a real process, under a watchdog that ends it before its lease is over.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::process::Command;

use jiff::Timestamp;
use rustix::process::Signal;
use tenure_api::{SessionView, Taken};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::identity::Identity;
use super::recorded::Recorded;
use super::settings::Settings;
use super::steps::Input;
use super::{logs, unwatched};
use crate::watched::{Ended, Guarded, Leaves, Report, Standard};

/// What a pipeline must not know: who has these can do more than show a channel.
const SECRETS: [&str; 5] =
    ["XG2G_IDEM_SECRET", "TENURE_IDEM_SECRET", "TENURE_ADMIN_TOKEN", "TENURE_TOKEN", "TENURE_LEASE_TOKEN"];

/// What a pipeline knows about its session, and not about one that started the worker.
const OWN: [&str; 9] = [
    unwatched::VARIABLE,
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
pub enum Order {
    /// It may run until then.
    Extend(u64),
    End,
    Kill,
}

/// A pipeline that is to be started.
pub struct Pipeline {
    pub session: SessionView,
    pub taken: Taken,
    /// Until when, unless it is extended.
    pub until: u64,
}

impl Pipeline {
    /// Starts it, and tells what becomes of it. When this returns, nobody of it is left.
    pub async fn carry_out(
        self,
        settings: &Settings,
        mut orders: UnboundedReceiver<Order>,
        tell: &UnboundedSender<Input>,
    ) {
        let id = self.session.session_id.clone();
        let command = self.command(settings);
        let mut guarded = match self.prepare(settings, &command) {
            Ok(guarded) => guarded,
            Err(error) => {
                let why = format!("its log or its watchdog cannot be had: {error}");
                return drop(tell.send(Input::NotStarted(id, why)));
            }
        };
        guarded.start(self.until, settings.margins(), Leaves::Nobody, self.environment()).await;
        let (mut is_heard, mut is_bereft) = (true, false);
        let last = loop {
            let report = tokio::select! {
                report = guarded.report() => report,
                order = orders.recv(), if is_heard => {
                    is_heard = order.is_some();
                    match order {
                        Some(Order::Extend(until)) => guarded.move_deadline(until).await,
                        Some(Order::Kill) => guarded.kill().await,
                        // Nobody is left who would keep its lease.
                        Some(Order::End) | None => guarded.end().await,
                    }
                    continue;
                }
            };
            match report {
                Some(Report::Started(number)) => {
                    let watchdog = i32::try_from(guarded.watchdog()).unwrap_or(0);
                    let process = Recorded::of(number, watchdog).to_string();
                    let _ = tell.send(Input::Started(id.clone(), process));
                }
                Some(Report::Stopped(_)) => {}
                Some(Report::Ending) => drop(tell.send(Input::Ending(id.clone()))),
                Some(Report::NotStarted { error }) => {
                    let error =
                        error.map_or_else(|| io::ErrorKind::Other.into(), io::Error::from_raw_os_error);
                    break Input::NotStarted(id, format!("{} cannot be run: {error}", command[0]));
                }
                Some(Report::TooLate) => break Input::TooLate(id),
                Some(Report::Ended(ended)) => break Input::Gone(id, ended),
                None => {
                    is_bereft = true;
                    break Input::Gone(id, Ended::Signal(Signal::KILL.as_raw()));
                }
            }
        };
        // Mostly it takes a moment, but a moment is too long for whoever shares this thread.
        let end = move || {
            if is_bereft {
                guarded.bereave();
            }
            guarded.dismiss();
        };
        let _ = tokio::task::spawn_blocking(end).await;
        let _ = tell.send(last);
    }

    fn command(&self, settings: &Settings) -> Vec<String> {
        let of_recordings = settings.recording_command.as_ref();
        let template = of_recordings.filter(|_| self.session.recording_id.is_some());
        template.unwrap_or(&settings.command).fill(&self.session, self.taken.slot)
    }

    fn prepare(&self, settings: &Settings, command: &[String]) -> io::Result<Guarded> {
        let (id, worker) = (&self.session.session_id, Identity::own()?);
        let nothing = File::open("/dev/null")?;
        let log = logs::open(&settings.logs, id, command, Timestamp::now())?;
        let standard = Standard([nothing.as_fd(), log.as_fd(), log.as_fd()]);
        let arguments: Vec<OsString> = command.iter().map(OsString::from).collect();
        Guarded::prepare_with(&arguments, standard, |watchdog| {
            without_secrets(watchdog);
            // So that a worker after this one finds it, even before anybody was told of it.
            watchdog.env("TENURE_SESSION", id).env(unwatched::VARIABLE, worker.to_string());
        })
    }

    fn environment(&self) -> Vec<(String, String)> {
        let SessionView { service_ref, recording_id, profile_id, params, .. } = &self.session;
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
        let is_secret = SECRETS.iter().any(|secret| text.starts_with(secret));
        if is_secret || OWN.contains(&text.as_ref()) {
            command.env_remove(name);
        }
    }
}
