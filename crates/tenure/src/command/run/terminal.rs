//! Whose terminal it is: the command's while it runs, ours before and after.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{Pid, Signal, getpgid, getpgrp, getpid, getppid, getsid, kill_process};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

use crate::exit;
use crate::terminal_message::print_error;

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
