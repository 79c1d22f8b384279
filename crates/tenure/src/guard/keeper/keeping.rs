//! A command that is watched, from its start until nobody is left of all that it started.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitStatus, getpgid, getpid, getppid, getrlimit, kill_process,
    set_child_subreaper, setrlimit,
};
use tenure_seccomp::Listener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, mpsc};

use super::owners::Owners;
use super::scope::Scope;
use super::telling::Teller;
use super::{AT_ONCE, PATIENCE, Watched, asking, changed, family, gate, orphans, task, why_nobody};
use crate::daemon::Questions;
use crate::gone::Gone;
use crate::guard::STARTING;
use crate::guard::link::{Order, Report};
use crate::guard::naming::Naming;
use crate::watched::{Ended, Link, Signals};
use crate::{descriptors, exit};

/// How often is looked again where somebody could not be let go of.
const AGAIN: Duration = Duration::from_millis(20);
/// How often is looked whether agents below us live.
const LOOK: Duration = Duration::from_millis(500);

/// A command that is watched.
pub struct Keeper {
    watched: Arc<Watched>,
    command: Pid,
    /// While it runs.
    is_running: bool,
    pending: mpsc::UnboundedReceiver<gate::Pending>,
    signals: Signals,
    ended: tokio::signal::unix::Signal,
}

impl Keeper {
    /// Begins to run it, watched.
    pub fn begin(
        naming: Naming,
        command: &[OsString],
        [input, output, errors]: [OwnedFd; 3],
        inherited: &[i32],
    ) -> io::Result<Self> {
        // What a terminal sends is for the command; we outlive it.
        let signals = Signals::all()?;
        let ended = signal(SignalKind::child())?;
        // Whoever loses its parent falls to us, and stays watched.
        set_child_subreaper(Some(getpid()))?;
        let (mut ours, theirs) = UnixStream::pair()?;
        let mut process = Command::new("/proc/self/exe");
        process.arg0("tenure").arg(STARTING).args(command).stdin(OwnedFd::from(theirs));
        // With whoever started us: what is sent to that group is for the command, and not for us.
        let group = getppid()
            .and_then(|front| getpgid(Some(front)).ok())
            .map_or(0, |group| group.as_raw_nonzero().get());
        process.stdout(Stdio::null()).stderr(Stdio::null()).process_group(group);
        let mut child = process.spawn()?;
        drop(process);
        descriptors::send(&ours, &[input.as_fd(), output.as_fd(), errors.as_fd()])?;
        let listener = receive_listener(&mut ours, &mut child)?;
        // The command has what was inherited; whoever waits for its end must not wait for us.
        for number in inherited {
            let _ = nix::unistd::close(*number);
        }
        // For us alone: the command has the limit that it had.
        let limit = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
        let watched = Arc::new(Watched {
            listener: Listener::new(listener),
            owners: Owners::new(),
            scope: Scope::default(),
            granted: Mutex::default(),
            questions: Questions::new(PATIENCE).map_err(why_nobody),
            teller: Teller::new(File::from(errors)),
            naming,
            own_name: format!("guard-{}", std::process::id()),
            command: child.id(),
            task: task(command),
            // It has not read anything yet.
            began: changed::wall(),
            is_introduced: AtomicBool::new(false),
            turns: Semaphore::new(AT_ONCE),
        });
        let (sender, pending) = mpsc::unbounded_channel();
        gate::begin(watched.clone(), sender)?;
        ours.write_all(b".")?;
        let command = Pid::from_child(&child);
        Ok(Self { watched, command, is_running: true, pending, signals, ended })
    }

    /// Watches until nobody is left.
    pub async fn keep(mut self, mut front: Link) -> io::Result<()> {
        let above = Gone::of(self.watched.owners.above());
        let mut has_front = true;
        let mut looks = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                pending = self.pending.recv() => match pending {
                    Some(pending) => drop(tokio::spawn(asking::answer(self.watched.clone(), pending))),
                    // Nobody is left whom we watch. The last one may not have been let go of.
                    None => {
                        if !self.watched.listener.readiness().is_ok_and(|readiness| readiness.is_over) {
                            // Nothing can be heard any more: whoever calls would wait for ever.
                            family::end_all();
                        }
                        while !self.let_go(&mut front).await {
                            tokio::time::sleep(AGAIN).await;
                        }
                        return Ok(());
                    }
                },
                _ = self.ended.recv() => drop(self.let_go(&mut front).await),
                order = front.receive::<Order>(), if has_front => match order {
                    Some(Order::Signal(number)) => self.send(Signal::from_named_raw(number)),
                    None => {
                        has_front = false;
                        // Who was started by us was killed: the command with it, as it would have been.
                        self.send(Some(Signal::KILL));
                    }
                },
                _ = self.signals.next() => {}
                // Its agent is gone, and with it the right to change anything.
                () = above.wait() => {
                    family::end_all();
                    tokio::time::sleep(AGAIN).await;
                    self.let_go(&mut front).await;
                }
                _ = looks.tick() => {
                    self.let_go(&mut front).await;
                    orphans::end(&self.watched);
                }
            }
        }
    }

    /// Lets go of who ended. Says whether the command is among those.
    async fn let_go(&mut self, front: &mut Link) -> bool {
        let mut status = None;
        let all = family::reap(|pid, how| {
            if pid == self.command {
                status = Some(how);
            }
        });
        if let Some(status) = status {
            self.is_running = false;
            self.watched.teller.command_ended();
            asking::introduce(&self.watched).await;
            // If nobody hears it, nobody needs it.
            let _ = front.send(&Report::Ended(how(status))).await;
        }
        all && !self.is_running
    }

    fn send(&self, signal: Option<Signal>) {
        if let Some(signal) = signal.filter(|_| self.is_running) {
            let _ = kill_process(self.command, signal);
        }
    }
}

fn how(status: WaitStatus) -> Ended {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ended::Code(code),
        (None, Some(signal)) => Ended::Signal(signal),
        (None, None) => Ended::Code(exit::UNAVAILABLE.into()),
    }
}

/// The listener, or why there is none.
fn receive_listener(stream: &mut UnixStream, child: &mut Child) -> io::Result<OwnedFd> {
    match descriptors::receive(stream) {
        Ok([listener]) => Ok(listener),
        Err(error) => {
            let mut number = [0; 4];
            let why = stream.read_exact(&mut number).map(|()| i32::from_le_bytes(number));
            let _ = child.wait();
            Err(why.map_or(error, io::Error::from_raw_os_error))
        }
    }
}
