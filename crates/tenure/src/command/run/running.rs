//! From the start of a command to its end: passes on what signals, the terminal, the lease and the watchdog say.

use std::io;

use rustix::process::Signal;
use tenure_client::Guard;

use super::terminal::{Terminal, stop_with_the_job};
use crate::exit;
use crate::message::tell;
use crate::watched::clock::{Timer, now};
use crate::watched::{Ended, Guarded, Leaves, Margins, Report, Signals};

/// How long a killed command may take to be gone before it is given up: microseconds.
const PATIENCE: u64 = 10_000_000;

#[derive(Debug)]
pub enum Outcome {
    Ended(Ended),
    /// The command could not be started.
    NotStarted(io::Error),
    Lost {
        why: String,
        is_gone: bool,
    },
}

/// A command that runs under a lease.
pub struct Running<'a> {
    guarded: Guarded,
    guard: &'a Guard,
    signals: Signals,
    terminal: Option<Terminal>,
    margins: Margins,
    /// Why the lease is lost, and when to wait for the command no longer.
    lost: Option<(String, u64)>,
}

impl<'a> Running<'a> {
    /// Lets the watchdog start the command.
    pub async fn start(
        mut guarded: Guarded,
        guard: &'a Guard,
        signals: Signals,
        margins: Margins,
        environment: Vec<(String, String)>,
    ) -> Self {
        guarded.start(guard.believed_until(), margins, Leaves::Daemons, environment).await;
        Self { guarded, guard, signals, terminal: Terminal::of_standard_input(), margins, lost: None }
    }

    pub async fn until_the_end(mut self) -> Outcome {
        let timer = Timer::new();
        let give_up = async |at: Option<u64>| match &timer {
            Ok(timer) => timer.wait_until(at).await,
            Err(_) => std::future::pending().await,
        };
        loop {
            let report = tokio::select! {
                report = self.guarded.report() => report,
                signal = self.signals.next() => {
                    self.pass_on(signal).await;
                    continue;
                }
                deadline = self.guard.deadline_moved() => {
                    self.guarded.move_deadline(deadline).await;
                    continue;
                }
                why = self.guard.lost(), if self.lost.is_none() => {
                    self.lose(why.to_string());
                    self.guarded.end().await;
                    continue;
                }
                () = give_up(self.lost.as_ref().map(|(_, at)| *at)) => return self.lost(false),
            };
            match report {
                Some(Report::Started(_)) => self.begin().await,
                Some(Report::Stopped(signal)) => self.stopped(signal).await,
                Some(Report::Ending) => self.lose("it was not renewed in time".to_owned()),
                Some(Report::Ended(ended)) => return self.ended(ended),
                Some(Report::NotStarted { error }) => {
                    let error =
                        error.map_or_else(|| io::ErrorKind::Other.into(), io::Error::from_raw_os_error);
                    self.guarded.dismiss();
                    return Outcome::NotStarted(error);
                }
                Some(Report::TooLate) => {
                    self.lose("it was almost over before the command could start".to_owned());
                    return self.lost(true);
                }
                None => {
                    self.guarded.bereave();
                    tell("tenure: the command's watchdog is gone, so the command was killed\n");
                    return self.ended(Ended::Signal(Signal::KILL.as_raw()));
                }
            }
        }
    }

    async fn begin(&mut self) {
        if let (Some(terminal), Some(group)) = (&self.terminal, self.guarded.group())
            && terminal.give_first(group)
        {
            // It may have asked for the terminal before it was given, and been stopped for that.
            self.guarded.signal(Signal::CONT).await;
        }
    }

    async fn pass_on(&mut self, signal: Signal) {
        if signal == Signal::CONT
            && let (Some(terminal), Some(group)) = (&self.terminal, self.guarded.group())
        {
            terminal.give_first(group);
        }
        self.guarded.signal(signal).await;
    }

    /// The command was stopped: the whole job is.
    async fn stopped(&mut self, signal: i32) {
        let is_for_the_terminal = [Signal::TTIN, Signal::TTOU].map(Signal::as_raw).contains(&signal);
        // Who stops the command alone, and not from the terminal, wants the command stopped and nothing else.
        if !is_for_the_terminal && signal != Signal::TSTP.as_raw() {
            return;
        }
        let group = self.guarded.group();
        let has_it = |terminal: &Terminal| group.is_some_and(|group| terminal.give(group));
        if !(is_for_the_terminal && self.terminal.as_ref().is_some_and(has_it)) {
            if let (Some(terminal), Some(group)) = (&self.terminal, group) {
                terminal.take(group);
            }
            stop_with_the_job();
            if let (Some(terminal), Some(group)) = (&self.terminal, group) {
                terminal.give_first(group);
            }
        }
        self.guarded.signal(Signal::CONT).await;
    }

    fn lose(&mut self, why: String) {
        let end = self.guard.believed_until().max(now().saturating_add(self.margins.grace.0));
        self.lost.get_or_insert((why, end.saturating_add(PATIENCE)));
    }

    fn ended(mut self, ended: Ended) -> Outcome {
        self.restore_terminal(!matches!(ended, Ended::Code(_)));
        if self.lost.is_some() {
            return self.lost(true);
        }
        self.guarded.dismiss();
        Outcome::Ended(ended)
    }

    fn lost(mut self, is_gone: bool) -> Outcome {
        self.restore_terminal(true);
        let why = self.lost.map(|(why, _)| why).unwrap_or_default();
        if is_gone {
            self.guarded.dismiss();
        }
        Outcome::Lost { why, is_gone }
    }

    fn restore_terminal(&mut self, resets: bool) {
        if let (Some(terminal), Some(group)) = (self.terminal.take(), self.guarded.group()) {
            terminal.take(group);
            if resets {
                terminal.reset();
            }
        }
    }
}

impl Ended {
    /// The code that tells others how the command ended.
    pub fn code(self) -> u8 {
        match self {
            Ended::Code(code) => u8::try_from(code).unwrap_or(u8::MAX),
            Ended::Signal(signal) => exit::by_signal(signal),
        }
    }

    /// Whether the command says that all went well.
    pub fn is_success(self) -> bool {
        self == Ended::Code(0)
    }
}
