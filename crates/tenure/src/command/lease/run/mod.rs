//! `tenure run`.
//!
//! ```text
//! tenure run ── keeps the lease, passes signals on ──┐ a connection: deadlines and signals down, reports up
//!   └─ watchdog, in a group of its own ──────────────┘
//!        └─ the command, in a group of its own, with the terminal
//! ```

mod running_command;
mod wait_progress;

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use std::{env, io};

use clap::Args;
use rustix::process::Signal;
use tenure_api::AcquireRequest;
use tenure_client::{Client, HeldLease, HoldError, WaitLimit};
use tenure_core::kernel::TickDuration;
use tenure_host::interprocess::{CommandExit, Signals};
use tenure_host::stderr::{print_error, print_stderr};
use tenure_worker::process_supervisor;
use tenure_worker::process_supervisor::{SupervisedProcess, TerminationMargins};

use self::running_command::{RunOutcome, RunningCommand};
use self::wait_progress::WaitProgress;
use crate::client::with_client;
use crate::command::lease::request::LeaseRequestArguments;
use crate::duration::{milliseconds, parse};
use crate::failure::Failure;
use crate::{autostart, exit};

/// How long a server may take to hear that we want nothing any more.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(3);

/// Runs a command while it holds a lease, and ends it before anybody else can have the lease.
///
/// It waits for the lease, as long as it takes unless --wait or --no-wait says otherwise, renews it while the command
/// runs, and gives it back at the end. If the lease is lost, the command and all that it started get SIGTERM, and
/// SIGKILL before the lease is over, even if `tenure run` itself is stopped or killed. The command finds TENURE_FENCE,
/// TENURE_LEASE and TENURE_RESOURCE in its environment.
///
/// Exit codes: the command's own, 128+n if signal n ended it; 75 held or waited in vain, 76 the lease was lost, 69 no
/// server, 77 denied, 126 and 127 the command cannot be run.
///
/// Example: tenure run --on deploy:prod --wait 5m -- ./deploy.sh
#[derive(Debug, Args)]
pub struct Run {
    /// What to hold, as `domain:name`; can be repeated: all of them, or none
    #[arg(long, required = true, value_name = "RESOURCE")]
    on: Vec<String>,
    #[command(flatten)]
    request: LeaseRequestArguments,
    /// How long to wait for it [default: as long as it takes]
    #[arg(long, value_name = "DURATION", value_parser = parse, conflicts_with = "no_wait")]
    wait: Option<Duration>,
    /// Do not wait: end with code 75 if somebody else has it
    #[arg(long)]
    no_wait: bool,
    /// How long the command has between SIGTERM and SIGKILL [default: a quarter of the time to live, at most 5s]
    #[arg(long, value_name = "DURATION", value_parser = parse)]
    kill_after: Option<Duration>,
    /// Say nothing while it waits
    #[arg(long, short)]
    quiet: bool,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What `tenure run`, the worker and hooks start themselves as, beside the command. These are no commands for people.
pub fn run_internal_subcommand(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let name = arguments.nth(1)?;
    match name.to_str()? {
        process_supervisor::SUBCOMMAND => {
            let result = process_supervisor::run(&arguments.collect::<Vec<_>>());
            let failure = |error| Failure::new(exit::UNAVAILABLE, "the watchdog of a command failed", &error);
            Some(result.map_or_else(|error| failure(error).report(), |()| ExitCode::SUCCESS))
        }
        tenure_guard::DETACHED => Some(autostart::run(arguments.next())),
        running_command::SUBCOMMAND => Some(running_command::transfer_foreground(arguments.next())),
        _ => None,
    }
}

impl Run {
    /// Runs the command to its end.
    pub fn run(self) -> Result<ExitCode, Failure> {
        let program = self.command.first().expect("the command line asks for one");
        check(program)?;
        let ttl = TickDuration::from_millis(self.request.ttl);
        let grace = self.kill_after.map(|grace| TickDuration::from_millis(milliseconds(grace)));
        if grace.is_some_and(|grace| grace.0 > ttl.0 / 2) {
            return Err(Failure::from_message(
                exit::USAGE,
                "--kill-after is more than half of --ttl: the command would be ended before the lease can be renewed",
            ));
        }
        let margins = TerminationMargins::for_lease(ttl, grace);
        let wait = match self.wait {
            _ if self.no_wait => WaitLimit::No,
            Some(wait) if wait.is_zero() => WaitLimit::No,
            Some(wait) => WaitLimit::For(wait),
            None => WaitLimit::Forever,
        };
        let requests = self.request.requests(self.on, 0);
        let waiting = WaitProgress::new(self.quiet);
        with_client(async |client| {
            let code = run(&client, requests, wait, waiting, margins, &self.command).await;
            // Then whoever gave up has left the queue, and whoever lost a lease has given it back. If the server does
            // not answer, it finds out by itself that we are gone.
            let _ = tokio::time::timeout(RELEASE_TIMEOUT, client.drain()).await;
            code
        })
    }
}

async fn run(
    client: &Client,
    wants: Vec<AcquireRequest>,
    wait: WaitLimit,
    waiting: WaitProgress,
    margins: TerminationMargins,
    command: &[OsString],
) -> Result<ExitCode, Failure> {
    let no_process = |error| Failure::new(exit::UNAVAILABLE, "the command cannot be watched", &error);
    let mut signals = Signals::catch_forwarded().map_err(no_process)?;
    // It starts while the server is asked.
    let guarded = SupervisedProcess::prepare(command).map_err(no_process)?;
    let guard = tokio::select! {
        guard = hold(client, wants, wait, waiting) => guard?,
        signal = interruption(&mut signals) => return Ok(CommandExit::Signal(signal.as_raw()).exit_code().into()),
    };
    let names = names(&guard);
    let outcome =
        RunningCommand::start(guarded, &guard, signals, margins, environment(&guard)).await.wait().await;
    let (reason, code) = match &outcome {
        RunOutcome::Ended(ended) => {
            (if ended.is_success() { "COMPLETED" } else { "ABORTED" }, ended.exit_code())
        }
        RunOutcome::NotStarted(_) => ("ABORTED", exit::CANNOT_EXECUTE),
        RunOutcome::Lost { why, is_gone } => {
            print_stderr(&format!("tenure: {names} was lost, and the command was ended: {why}\n"));
            if !is_gone {
                print_stderr(
                    "tenure: it still runs all the same: the system does not end it. Look for it before others go on.\n",
                );
            }
            return Ok(exit::LOST.into());
        }
    };
    if let Err(error) = guard.release_with_reason(Some(reason)).await {
        print_error(&format!("{names} was not given back, and is free when its time is over"), &error);
    }
    match outcome {
        RunOutcome::NotStarted(error) => Err(exec_failure(&command[0], &error)),
        _ => Ok(code.into()),
    }
}

/// Waits for the lease, and says how that goes.
async fn hold(
    client: &Client,
    wants: Vec<AcquireRequest>,
    wait: WaitLimit,
    waiting: WaitProgress,
) -> Result<HeldLease, Failure> {
    let mut wants = wants;
    let holding = match wants.len() {
        1 => client.hold(wants.remove(0)),
        _ => client.hold_all(wants),
    };
    let holding = holding.wait(wait);
    let held = match waiting.queue_callback() {
        Some(callback) => holding.on_queue(callback).await,
        None => holding.await,
    };
    drop(waiting);
    held.map_err(|error| match error {
        HoldError::Held(problem) => tenure_client::Error::Problem(problem).into(),
        HoldError::Failed(error) => error.into(),
        other => Failure::new(exit::UNAVAILABLE, "there is no lease", &other),
    })
}

/// A signal after which nobody waits for the lease any more.
async fn interruption(signals: &mut Signals) -> Signal {
    loop {
        match signals.next().await {
            Signal::TSTP => running_command::suspend_self(),
            signal @ (Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT) => return signal,
            _ => {}
        }
    }
}

/// What the command may know. The lease's token is not part of it: whoever has that could give the lease away.
fn environment(guard: &HeldLease) -> Vec<(String, String)> {
    let leases = guard.leases();
    let list = |of: fn(&tenure_api::Lease) -> String| leases.iter().map(of).collect::<Vec<_>>().join(",");
    let variables = [
        ("TENURE_FENCE", list(|lease| lease.fence.to_string())),
        ("TENURE_LEASE", list(|lease| lease.id.clone())),
        ("TENURE_RESOURCE", list(|lease| lease.resource.clone())),
    ];
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn names(guard: &HeldLease) -> String {
    guard.leases().iter().map(|lease| lease.resource.as_str()).collect::<Vec<_>>().join(", ")
}

/// Says why `program` surely cannot be run, if that is known.
pub fn check(program: &OsStr) -> Result<(), Failure> {
    let path = Path::new(program);
    if path.components().count() > 1 || path.has_root() {
        return check_file(path, program);
    }
    // Without a PATH the system has a choice of its own.
    let Some(folders) = env::var_os("PATH") else { return Ok(()) };
    let candidates: Vec<PathBuf> = env::split_paths(&folders).map(|folder| folder.join(path)).collect();
    if candidates.iter().any(|candidate| check_file(candidate, program).is_ok()) {
        return Ok(());
    }
    match candidates.iter().find(|candidate| candidate.is_file()) {
        Some(candidate) => check_file(candidate, program),
        None => Err(exec_failure(program, &io::ErrorKind::NotFound.into())),
    }
}

fn check_file(path: &Path, program: &OsStr) -> Result<(), Failure> {
    let metadata = path.metadata().map_err(|error| exec_failure(program, &error))?;
    let is_executable = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
    if is_executable { Ok(()) } else { Err(exec_failure(program, &io::ErrorKind::PermissionDenied.into())) }
}

/// The failure of a command that the system did not start, with the code that a shell gives it.
pub fn exec_failure(program: &OsStr, error: &io::Error) -> Failure {
    let program = program.display();
    match error.kind() {
        io::ErrorKind::NotFound => Failure::from_message(
            exit::NO_SUCH_COMMAND,
            &format!("there is no command {program}; look at how it is written, and at PATH"),
        ),
        io::ErrorKind::PermissionDenied => Failure::from_message(
            exit::CANNOT_EXECUTE,
            &format!("{program} may not be executed; `chmod +x` lets it, if it is a program"),
        ),
        _ => Failure::new(exit::CANNOT_EXECUTE, &format!("{program} cannot be run"), error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unrunnable_program_is_rejected_before_it_is_started() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        std::fs::write(&plain, "").unwrap();
        let code = |program: &OsStr| check(program).map_err(|failure| failure.code());
        assert_eq!(code("sh".as_ref()), Ok(()));
        assert_eq!(code("/bin/sh".as_ref()), Ok(()));
        assert_eq!(code("there-is-no-such-command".as_ref()), Err(127));
        assert_eq!(code("/nowhere/at-all".as_ref()), Err(127));
        assert_eq!(code(plain.as_ref()), Err(126));
        assert_eq!(code(folder.path().as_ref()), Err(126));
    }
}
