//! The process that somebody started: it starts the keeper, passes signals on, and stops and ends as the command does.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal as Named;
use rustix::process::{Signal, getpid, set_child_subreaper};
use tenure_client::boot_microseconds as now;
use tokio::time::timeout;

use super::heard::{Heard, Sent};
use super::keeper::family;
use super::link::{Order, Report};
use super::naming::Naming;
use super::{KEEPER, inside, job};
use crate::command::cannot_run;
use crate::message::tell;
use crate::watched::{Ended, Link};
use crate::{descriptors, exit};

/// How long a keeper that has nothing left to watch may take to end.
const FAREWELL: Duration = Duration::from_secs(2);

/// Runs the command, and all that it starts, behind the gate.
pub fn run(command: &[OsString], naming: &Naming) -> ExitCode {
    if inside::is_watched() {
        return become_it(command);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(front(command, naming))) {
        Ok(Ended::Code(code)) => u8::try_from(code).unwrap_or(u8::MAX).into(),
        Ok(Ended::Signal(number)) => job::end_by(number),
        Err(error) => {
            tell(&format!(
                "tenure: nothing was run: the guard cannot be started ({error}). Run the command without `tenure guard` \
                 only if no other agent works here.\n"
            ));
            exit::UNAVAILABLE.into()
        }
    }
}

/// Becomes the command: whoever watches us watches it.
pub fn become_it(command: &[OsString]) -> ExitCode {
    let Some((program, arguments)) = command.split_first() else { return exit::USAGE.into() };
    let error = Command::new(program).args(arguments).exec();
    cannot_run(program, &error).report()
}

async fn front(command: &[OsString], naming: &Naming) -> io::Result<Ended> {
    // If somebody kills the keeper, whom it watched falls to us.
    set_child_subreaper(Some(getpid()))?;
    // Before the keeper is there: a signal in between must not leave it alone.
    let mut signals = Heard::begin()?;
    let (mut keeper, link) = start(command, naming, &signals)?;
    let mut front = Front { link, keeper: keeper.id(), continued: 0 };
    loop {
        tokio::select! {
            // Signals first: who was let go on need not hear any more that it should stop.
            biased;
            sent = signals.next() => front.hear(sent).await,
            report = front.link.receive::<Report>() => match report {
                Some(Report::NotWatched { why, remedy }) => {
                    let _ = keeper.wait();
                    tell(&format!("tenure: nothing was run: {why}. {remedy}\n"));
                    return Ok(Ended::Code(exit::UNAVAILABLE.into()));
                }
                Some(Report::Stopped { signal, at }) => {
                    while let Some(sent) = signals.waiting() {
                        front.hear(sent).await;
                    }
                    if let (true, Ok(signal)) = (at > front.continued, Named::try_from(signal)) {
                        front.stop(signal).await;
                    }
                }
                Some(Report::Ended { how, is_last }) => {
                    if is_last {
                        bury(keeper, front.link).await;
                    }
                    return Ok(how);
                }
                None => {
                    let _ = keeper.wait();
                    // Nothing that it watched can change a file any more, but for those that it has open.
                    family::end_all();
                    tell("tenure: whoever watched the command was killed, so the command was ended too. Run it again.\n");
                    return Ok(Ended::Code(exit::UNAVAILABLE.into()));
                }
            },
        }
    }
}

/// Starts the keeper, which starts the command.
fn start(command: &[OsString], naming: &Naming, signals: &Heard) -> io::Result<(Child, Link)> {
    let (ours, theirs) = UnixStream::pair()?;
    let (input, output, errors) = (io::stdin(), io::stdout(), io::stderr());
    descriptors::send(&ours, &[input.as_fd(), output.as_fd(), errors.as_fd()])?;
    let mut process = Command::new("/proc/self/exe");
    process.arg0("tenure").arg(KEEPER).args(naming.words()).args(command);
    process.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    if job::has_group() {
        // In a group of its own: who ends ours must not leave behind what nobody answers any more. Where ours cannot be named,
        // the command could not come back into it.
        process.process_group(0);
    }
    let keeper = signals.apart(|| process.spawn())?;
    // It has the other end of the connection, which is ours to see the end of.
    drop(process);
    Ok((keeper, Link::new(ours)?))
}

/// What stands between whoever started us and the command.
struct Front {
    link: Link,
    keeper: u32,
    /// When somebody let us go on last, in microseconds of CLOCK_BOOTTIME.
    continued: u64,
}

impl Front {
    /// A signal came.
    ///
    /// What a terminal sends, the command gets by itself: it is in the same group. Only that the terminal is gone, nobody is told
    /// but whoever leads the session. What a process sends is passed on, though it may have been sent to the whole group: nobody
    /// can tell that, and a signal that comes twice is better than one that never comes.
    async fn hear(&mut self, Sent { signal, is_systems, sender }: Sent) {
        if signal == Signal::CONT {
            self.continued = now();
        }
        let is_everybodys = is_systems && !(signal == Signal::HUP && job::leads_session());
        // The keeper wakes us when the command goes on by itself: it may have stopped again by now.
        if !is_everybodys && sender != self.keeper {
            self.order(signal).await;
        }
    }

    /// The command was stopped: so are we, and when we go on, it does.
    async fn stop(&mut self, signal: Named) {
        if signal == Named::SIGSTOP || job::has_shell() {
            job::stop_by(signal);
            self.continued = now();
            return;
        }
        // Nobody is there who would let it go on. The system does not stop such jobs at all; and those that use a terminal
        // which is not theirs it tells that nobody is there any more.
        if signal != Named::SIGTSTP {
            self.order(Signal::HUP).await;
        }
        self.order(Signal::CONT).await;
    }

    async fn order(&mut self, signal: Signal) {
        // If the keeper is gone, that is seen where it is listened to.
        let _ = self.link.send(&Order::Signal(signal.as_raw())).await;
    }
}

/// Waits for the end of a keeper that has nothing left to do: whoever is above us may never look after it.
async fn bury(mut keeper: Child, mut link: Link) {
    let silence = async { while link.receive::<Report>().await.is_some() {} };
    if timeout(FAREWELL, silence).await.is_ok() {
        let _ = keeper.wait();
    }
}
