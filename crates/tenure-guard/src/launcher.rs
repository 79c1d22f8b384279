//! The launcher of `tenure guard`: starts the supervisor, passes signals on, and stops and ends as the command does.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal as Named;
use rustix::process::{Signal, getpid, set_child_subreaper, set_parent_process_death_signal};
use tenure_client::boot_microseconds as now;
use tenure_host::interprocess::{CommandExit, MessageStream, fd_transfer};
use tokio::time::timeout;

use super::protocol::{SupervisorCommand, SupervisorReport};
use super::session_selector::SessionSelector;
use super::signals::{ReceivedSignal, SignalQueue};
use super::syscall_supervisor::process_tree;
use super::{SUPERVISOR_SUBCOMMAND, job_control, seccomp_probe};
use crate::GuardError;

/// How long a supervisor that has nothing left to watch may take to end.
const SUPERVISOR_EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs the command, and all that it starts, behind the gate.
pub fn run(command: &[OsString], naming: &SessionSelector) -> Result<ExitCode, GuardError> {
    if seccomp_probe::is_guarded() {
        return Err(exec_command(command));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(match runtime?.block_on(launch(command, naming))? {
        CommandExit::Code(code) => u8::try_from(code).unwrap_or(u8::MAX).into(),
        CommandExit::Signal(number) => job_control::exit_by_signal(number),
    })
}

/// Becomes the command: whoever watches us watches it. Returns only if that fails.
pub fn exec_command(command: &[OsString]) -> GuardError {
    let Some((program, arguments)) = command.split_first() else { return GuardError::NoCommand };
    let error = Command::new(program).args(arguments).exec();
    GuardError::NotExecuted { program: program.clone(), error }
}

async fn launch(command: &[OsString], naming: &SessionSelector) -> Result<CommandExit, GuardError> {
    // If somebody kills the supervisor, whom it watched falls to us.
    set_child_subreaper(Some(getpid())).map_err(io::Error::from)?;
    // Before the supervisor is there: a signal in between must not leave it alone.
    let mut signals = SignalQueue::open()?;
    let (mut supervisor, link) = start(command, naming, &signals)?;
    let mut launcher = Launcher { link, supervisor: supervisor.id(), resumed_at: 0 };
    loop {
        tokio::select! {
            // Signals first: who was let go on need not hear any more that it should stop.
            biased;
            sent = signals.next() => launcher.handle_signal(sent).await,
            report = launcher.link.receive::<SupervisorReport>() => match report {
                Some(SupervisorReport::NotWatched { why, remedy }) => {
                    let _ = supervisor.wait();
                    return Err(GuardError::NotWatched { why, remedy });
                }
                Some(SupervisorReport::Stopped { signal, at }) => {
                    while let Some(sent) = signals.try_next() {
                        launcher.handle_signal(sent).await;
                    }
                    if let (true, Ok(signal)) = (at > launcher.resumed_at, Named::try_from(signal)) {
                        launcher.stop(signal).await;
                    }
                }
                Some(SupervisorReport::Ended { how, is_last }) => {
                    if is_last {
                        reap_supervisor(supervisor, launcher.link).await;
                    }
                    return Ok(how);
                }
                None => {
                    let _ = supervisor.wait();
                    // Nothing that it watched can change a file any more, but for those that it has open.
                    process_tree::end_all_descendants();
                    return Err(GuardError::SupervisorKilled);
                }
            },
        }
    }
}

/// Starts the supervisor, which starts the command.
fn start(
    command: &[OsString],
    naming: &SessionSelector,
    signals: &SignalQueue,
) -> io::Result<(Child, MessageStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let (input, output, errors) = (io::stdin(), io::stdout(), io::stderr());
    fd_transfer::send(&ours, &[input.as_fd(), output.as_fd(), errors.as_fd()])?;
    let mut process = Command::new("/proc/self/exe");
    process.arg0("tenure").arg(SUPERVISOR_SUBCOMMAND).args(naming.to_arguments()).args(command);
    process.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    if job_control::has_visible_process_group() {
        // In a group of its own: who ends ours must not leave behind what nobody answers any more. Where ours cannot be named,
        // the command could not come back into it.
        process.process_group(0);
    }
    let supervisor = signals.with_original_mask(|| process.spawn())?;
    // It has the other end of the connection, which is ours to see the end of.
    drop(process);
    Ok((supervisor, MessageStream::new(ours)?))
}

/// What stands between whoever started us and the command.
struct Launcher {
    link: MessageStream,
    supervisor: u32,
    /// When somebody let us go on last, in microseconds of CLOCK_BOOTTIME.
    resumed_at: u64,
}

impl Launcher {
    /// A signal came.
    ///
    /// What a terminal sends, the command gets by itself: it is in the same group. Only that the terminal is gone, nobody is told
    /// but whoever leads the session. What a process sends is passed on, though it may have been sent to the whole group: nobody
    /// can tell that, and a signal that comes twice is better than one that never comes.
    async fn handle_signal(
        &mut self,
        ReceivedSignal { signal, is_from_kernel: is_systems, sender }: ReceivedSignal,
    ) {
        if signal == Signal::CONT {
            self.resumed_at = now();
        }
        let is_everybodys = is_systems && !(signal == Signal::HUP && job_control::is_session_leader());
        // The supervisor wakes us when the command goes on by itself: it may have stopped again by now.
        if !is_everybodys && sender != self.supervisor {
            self.send_signal(signal).await;
        }
    }

    /// The command was stopped: so are we, and when we go on, it does.
    async fn stop(&mut self, signal: Named) {
        if signal == Named::SIGSTOP || job_control::has_job_control_shell() {
            job_control::stop_by_signal(signal);
            self.resumed_at = now();
            return;
        }
        // Nobody is there who would let it go on. The system does not stop such jobs at all; and those that use a terminal
        // which is not theirs it tells that nobody is there any more.
        if signal != Named::SIGTSTP {
            self.send_signal(Signal::HUP).await;
        }
        self.send_signal(Signal::CONT).await;
    }

    async fn send_signal(&mut self, signal: Signal) {
        // If the supervisor is gone, that is seen where it is listened to.
        let _ = self.link.send(&SupervisorCommand::Signal(signal.as_raw())).await;
    }
}

/// Waits for the end of a supervisor that has nothing left to do: whoever is above us may never look after it.
async fn reap_supervisor(mut supervisor: Child, mut link: MessageStream) {
    let silence = async { while link.receive::<SupervisorReport>().await.is_some() {} };
    if timeout(SUPERVISOR_EXIT_TIMEOUT, silence).await.is_ok() {
        let _ = supervisor.wait();
    }
}

/// Becomes the command, watched. Its input is the connection to the keeper, over which its real one comes.
pub fn exec_filtered(command: &[OsString]) -> GuardError {
    match install_filter() {
        Ok(()) => exec_command(command),
        // The keeper says why.
        Err(_) => GuardError::Reported,
    }
}

fn install_filter() -> io::Result<()> {
    let mut stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let [input, output, errors] = fd_transfer::receive(&stream)?;
    // Without its keeper it could do nothing any more, in the middle of whatever it does.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let listener = match tenure_seccomp::install() {
        Ok(listener) => listener,
        Err(error) => {
            let number = error.raw_os_error().unwrap_or_default();
            // One byte where a descriptor would come, then why there is none.
            stream.write_all(b"!")?;
            stream.write_all(&number.to_le_bytes())?;
            return Err(error);
        }
    };
    fd_transfer::send(&stream, &[listener.as_fd()])?;
    drop(listener);
    // Nothing that waits is done here until somebody listens.
    stream.read_exact(&mut [0])?;
    rustix::stdio::dup2_stdin(&input)?;
    rustix::stdio::dup2_stdout(&output)?;
    rustix::stdio::dup2_stderr(&errors)?;
    Ok(())
}
