//! The process that somebody started: it starts the keeper, passes signals on, and exits as the command did.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{Signal, getpgid, getpid, set_child_subreaper};
use rustix::termios::tcgetpgrp;

use super::keeper::family;
use super::link::{Order, Report};
use super::naming::Naming;
use super::{KEEPER, inside};
use crate::command::cannot_run;
use crate::message::tell;
use crate::watched::{Ended, Link, Signals};
use crate::{descriptors, exit};

/// Runs the command, and all that it starts, behind the gate.
pub fn run(command: &[OsString], naming: &Naming) -> ExitCode {
    if inside::is_watched() {
        return become_it(command);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(front(command, naming))) {
        Ok(code) => code.into(),
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

async fn front(command: &[OsString], naming: &Naming) -> io::Result<u8> {
    // If somebody kills the keeper, whom it watched falls to us.
    set_child_subreaper(Some(getpid()))?;
    // Before the keeper is there: a signal in between must not leave it alone.
    let mut signals = Signals::steering()?;
    let (ours, theirs) = UnixStream::pair()?;
    let (input, output, errors) = (io::stdin(), io::stdout(), io::stderr());
    descriptors::send(&ours, &[input.as_fd(), output.as_fd(), errors.as_fd()])?;
    let mut process = Command::new("/proc/self/exe");
    process.arg0("tenure").arg(KEEPER).args(naming.words()).args(command);
    process.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    // In a group of its own: who ends ours must not leave behind what nobody answers any more.
    process.process_group(0);
    let mut keeper = process.spawn()?;
    // It has the other end of the connection, which is ours to see the end of.
    drop(process);
    let mut link = Link::new(ours)?;
    loop {
        tokio::select! {
            report = link.receive::<Report>() => match report {
                Some(Report::NotWatched { why, remedy }) => {
                    let _ = keeper.wait();
                    tell(&format!("tenure: nothing was run: {why}. {remedy}\n"));
                    return Ok(exit::UNAVAILABLE);
                }
                Some(Report::Ended(Ended::Code(code))) => return Ok(u8::try_from(code).unwrap_or(u8::MAX)),
                Some(Report::Ended(Ended::Signal(signal))) => return Ok(exit::by_signal(signal)),
                None => {
                    let _ = keeper.wait();
                    // Nothing that it watched can change a file any more, but for those that it has open.
                    family::end_all();
                    tell("tenure: whoever watched the command was killed, so the command was ended too. Run it again.\n");
                    return Ok(exit::UNAVAILABLE);
                }
            },
            signal = signals.next() => pass_on(&mut link, signal).await,
        }
    }
}

/// What a terminal sends, the command gets by itself: it is in the same group. Stopping is for the whole group, too.
async fn pass_on(link: &mut Link, signal: Signal) {
    let is_terminals = [Signal::INT, Signal::QUIT, Signal::HUP, Signal::WINCH].contains(&signal);
    if is_terminals && has_terminal() {
        return;
    }
    if signal == Signal::TSTP {
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
        return;
    }
    if signal != Signal::CONT {
        // If the keeper is gone, that is seen where it is listened to.
        let _ = link.send(&Order::Signal(signal.as_raw())).await;
    }
}

/// Whether a terminal sends its signals to our group.
fn has_terminal() -> bool {
    let terminal = std::fs::File::open("/dev/tty").ok();
    let group = terminal.and_then(|terminal| tcgetpgrp(terminal).ok());
    group.is_some_and(|group| getpgid(None).is_ok_and(|own| own == group))
}
