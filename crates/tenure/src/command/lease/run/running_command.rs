//! From the start of a command to its end: passes on what signals, the terminal, the lease and the watchdog say.

use std::ffi::OsString;
use std::io;
use std::io::IsTerminal as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{Pid, Signal, getpgid, getpgrp, getpid, getppid, getsid, kill_process};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};
use tenure_client::HeldLease;
use tenure_host::interprocess::{CommandExit, Signals};
use tenure_host::stderr::{print_error, print_stderr};
use tenure_worker::process_supervisor::{
    DescendantPolicy, SupervisedProcess, TerminationMargins, Timer, WatchdogReport, now,
};

use crate::exit;

/// How long a killed command may take to be gone before it is given up: microseconds.
const KILL_TIMEOUT_MICROSECONDS: u64 = 10_000_000;

#[derive(Debug)]
pub enum RunOutcome {
    Ended(CommandExit),
    /// The command could not be started.
    NotStarted(io::Error),
    Lost {
        why: String,
        is_gone: bool,
    },
}

/// A command that runs under a lease.
pub struct RunningCommand<'a> {
    guarded: SupervisedProcess,
    guard: &'a HeldLease,
    signals: Signals,
    terminal: Option<Terminal>,
    margins: TerminationMargins,
    /// Why the lease is lost, and when to wait for the command no longer.
    lost: Option<(String, u64)>,
}

impl<'a> RunningCommand<'a> {
    /// Lets the watchdog start the command.
    pub async fn start(
        mut guarded: SupervisedProcess,
        guard: &'a HeldLease,
        signals: Signals,
        margins: TerminationMargins,
        environment: Vec<(String, String)>,
    ) -> Self {
        guarded.start(guard.deadline(), margins, DescendantPolicy::KeepDaemons, environment).await;
        Self { guarded, guard, signals, terminal: Terminal::from_standard_input(), margins, lost: None }
    }

    pub async fn wait(mut self) -> RunOutcome {
        let timer = Timer::new();
        let kill_timeout = async |at: Option<u64>| match &timer {
            Ok(timer) => timer.wait_until(at).await,
            Err(_) => std::future::pending().await,
        };
        loop {
            let report = tokio::select! {
                report = self.guarded.next_report() => report,
                signal = self.signals.next() => {
                    self.pass_on(signal).await;
                    continue;
                }
                deadline = self.guard.wait_for_new_deadline() => {
                    self.guarded.move_deadline(deadline).await;
                    continue;
                }
                why = self.guard.wait_until_lost(), if self.lost.is_none() => {
                    self.lose(why.to_string());
                    self.guarded.terminate().await;
                    continue;
                }
                () = kill_timeout(self.lost.as_ref().map(|(_, at)| *at)) => return self.lost(false),
            };
            match report {
                Some(WatchdogReport::Started(_)) => self.begin().await,
                Some(WatchdogReport::Stopped(signal)) => self.stopped(signal).await,
                Some(WatchdogReport::Ending) => self.lose("it was not renewed in time".to_owned()),
                Some(WatchdogReport::Ended(ended)) => return self.ended(ended),
                Some(WatchdogReport::NotStarted { error }) => {
                    let error =
                        error.map_or_else(|| io::ErrorKind::Other.into(), io::Error::from_raw_os_error);
                    self.guarded.close();
                    return RunOutcome::NotStarted(error);
                }
                Some(WatchdogReport::TooLate) => {
                    self.lose("it was almost over before the command could start".to_owned());
                    return self.lost(true);
                }
                None => {
                    self.guarded.kill_without_watchdog();
                    print_stderr("tenure: the command's watchdog is gone, so the command was killed\n");
                    return self.ended(CommandExit::Signal(Signal::KILL.as_raw()));
                }
            }
        }
    }

    async fn begin(&mut self) {
        if let (Some(terminal), Some(group)) = (&self.terminal, self.guarded.group())
            && terminal.set_initial_foreground(group)
        {
            // It may have asked for the terminal before it was given, and been stopped for that.
            self.guarded.send_signal(Signal::CONT).await;
        }
    }

    async fn pass_on(&mut self, signal: Signal) {
        if signal == Signal::CONT
            && let (Some(terminal), Some(group)) = (&self.terminal, self.guarded.group())
        {
            terminal.set_initial_foreground(group);
        }
        self.guarded.send_signal(signal).await;
    }

    /// The command was stopped: the whole job is.
    async fn stopped(&mut self, signal: i32) {
        let is_for_the_terminal = [Signal::TTIN, Signal::TTOU].map(Signal::as_raw).contains(&signal);
        // Who stops the command alone, and not from the terminal, wants the command stopped and nothing else.
        if !is_for_the_terminal && signal != Signal::TSTP.as_raw() {
            return;
        }
        let group = self.guarded.group();
        let has_it = |terminal: &Terminal| group.is_some_and(|group| terminal.set_foreground(group));
        if !(is_for_the_terminal && self.terminal.as_ref().is_some_and(has_it)) {
            if let (Some(terminal), Some(group)) = (&self.terminal, group) {
                terminal.reclaim_foreground(group);
            }
            suspend_self();
            if let (Some(terminal), Some(group)) = (&self.terminal, group) {
                terminal.set_initial_foreground(group);
            }
        }
        self.guarded.send_signal(Signal::CONT).await;
    }

    fn lose(&mut self, why: String) {
        let end = self.guard.deadline().max(now().saturating_add(self.margins.grace.0));
        self.lost.get_or_insert((why, end.saturating_add(KILL_TIMEOUT_MICROSECONDS)));
    }

    fn ended(mut self, ended: CommandExit) -> RunOutcome {
        self.restore_terminal(!matches!(ended, CommandExit::Code(_)));
        if self.lost.is_some() {
            return self.lost(true);
        }
        self.guarded.close();
        RunOutcome::Ended(ended)
    }

    fn lost(mut self, is_gone: bool) -> RunOutcome {
        self.restore_terminal(true);
        let why = self.lost.map(|(why, _)| why).unwrap_or_default();
        if is_gone {
            self.guarded.close();
        }
        RunOutcome::Lost { why, is_gone }
    }

    fn restore_terminal(&mut self, resets: bool) {
        if let (Some(terminal), Some(group)) = (self.terminal.take(), self.guarded.group()) {
            terminal.reclaim_foreground(group);
            if resets {
                terminal.restore_settings();
            }
        }
    }
}

#[derive(Debug)]
pub struct Terminal {
    /// How it was set, in case the command has no time to set it back.
    settings: Option<Termios>,
    /// Whether the command gets it from the start. In a pipeline, such as one that ends in a pager, it gets it when
    /// it uses it.
    starts_in_foreground: bool,
}

impl Terminal {
    /// The terminal, if standard input is one and this process is among those that it belongs to.
    pub fn from_standard_input() -> Option<Self> {
        tcgetpgrp(io::stdin()).ok()?;
        let starts_in_foreground = io::stdout().is_terminal();
        Some(Self { settings: tcgetattr(io::stdin()).ok(), starts_in_foreground })
    }

    /// Whether our job is in the foreground.
    pub fn is_foreground(&self) -> bool {
        tcgetpgrp(io::stdin()) == Ok(getpgrp())
    }

    /// Gives it to the command as it begins or goes on, unless it is not ours to give. True: the command has it.
    pub fn set_initial_foreground(&self, group: Pid) -> bool {
        self.starts_in_foreground && self.set_foreground(group)
    }

    /// Gives it to the command, unless it is not ours to give. True: the command has it.
    pub fn set_foreground(&self, group: Pid) -> bool {
        if self.is_foreground() {
            // Whoever fails here is in the background, and told so by the terminal.
            let _ = tcsetpgrp(io::stdin(), group);
        }
        tcgetpgrp(io::stdin()) == Ok(group)
    }

    /// Takes it back, if the command has it. Only somebody in the foreground may do that, so one of us goes there.
    pub fn reclaim_foreground(&self, group: Pid) {
        if tcgetpgrp(io::stdin()) != Ok(group) {
            return;
        }
        let mut helper = Command::new("/proc/self/exe");
        helper.args([SUBCOMMAND, &getpgrp().as_raw_nonzero().to_string()]);
        helper.process_group(group.as_raw_nonzero().get()).stdout(Stdio::null());
        if let Err(error) = helper.status() {
            print_error("the terminal cannot be taken back from the command", &error);
        }
    }

    /// Sets it as it was before.
    pub fn restore_settings(&self) {
        if let Some(settings) = self.settings.as_ref().filter(|_| self.is_foreground()) {
            let _ = tcsetattr(io::stdin(), OptionalActions::Drain, settings);
        }
    }
}

/// Stops this process as Ctrl-Z stops others, until somebody lets it go on; not at all, if there is nobody who would.
pub fn suspend_self() {
    let parent = getppid();
    let is_in_a_shell = parent.is_some_and(|parent| {
        getsid(Some(parent)) == getsid(None) && getpgid(Some(parent)).is_ok_and(|group| group != getpgrp())
    });
    if is_in_a_shell {
        let _ = kill_process(getpid(), Signal::STOP);
    }
}

/// What `tenure run` calls whoever takes the terminal back. A name that nobody types.
pub const SUBCOMMAND: &str = "__hand-over-terminal";

/// Gives the terminal to another group, from within the one that has it.
pub fn transfer_foreground(group: Option<OsString>) -> ExitCode {
    let group = group.and_then(|group| group.to_str()?.parse().ok()).and_then(Pid::from_raw);
    match group.map(|group| tcsetpgrp(io::stdin(), group)) {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(_)) => exit::NO.into(),
        None => exit::USAGE.into(),
    }
}
