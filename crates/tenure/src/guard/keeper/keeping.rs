//! A command that is watched, from its start until nobody is left of all that it started.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal as Named};
use nix::unistd::getpgid;
use parking_lot::Mutex;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitStatus, getpid, getppid, getrlimit, kill_process, set_child_subreaper,
    setrlimit,
};
use tenure_client::boot_microseconds as now;
use tenure_seccomp::Listener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, mpsc};

use super::owners::Owners;
use super::scope::Scope;
use super::telling::Teller;
use super::{AT_ONCE, PATIENCE, Watched, asking, changed, family, gate, orphans, speaking, task, why_nobody};
use crate::daemon::Questions;
use crate::exit::Gone;
use crate::guard::STARTING;
use crate::guard::link::{Order, Report};
use crate::guard::naming::Naming;
use crate::watched::{Ended, Link, Signals};
use crate::{descriptors, exit};

/// How often is looked again where somebody could not be let go of.
const AGAIN: Duration = Duration::from_millis(20);
/// How often is looked whether agents below us live.
const LOOK: Duration = Duration::from_millis(500);

pub struct Keeper {
    watched: Arc<Watched>,
    front: Option<Pid>,
    command: Pid,
    /// Until it ends.
    is_running: bool,
    /// It was stopped, and the front with it.
    is_stopped: bool,
    pending: mpsc::UnboundedReceiver<gate::Pending>,
    signals: Signals,
    ended: tokio::signal::unix::Signal,
}

impl Keeper {
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
        let front = getppid();
        match front.map(|front| getpgid(Some(nix::unistd::Pid::from_raw(front.as_raw_nonzero().get())))) {
            // It began outside of our namespace, where nobody can name it. So we are in it ourselves, and so is the command.
            Some(Ok(group)) if group.as_raw() == 0 => {}
            Some(Ok(group)) => drop(process.process_group(group.as_raw())),
            _ => drop(process.process_group(0)),
        }
        process.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = process.spawn()?;
        // For every thread of ours: a terminal lets us write though we are in the background, and where a file may not grow,
        // writing to it fails; nobody is stopped or ended for that.
        SigSet::from_iter([Named::SIGTTOU, Named::SIGXFSZ]).thread_block()?;
        drop(process);
        descriptors::send(&ours, &[input.as_fd(), output.as_fd(), errors.as_fd()])?;
        let listener = receive_listener(&mut ours, &mut child)?;
        // The command has what was inherited; whoever waits for its end must not wait for us.
        for number in inherited {
            let _ = nix::unistd::close(*number);
        }
        // For us alone: the command has the limits that it had.
        for resource in [Resource::Nofile, Resource::Fsize] {
            let limit = getrlimit(resource);
            let _ = setrlimit(resource, Rlimit { current: limit.maximum, ..limit });
        }
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
        Ok(Self { watched, front, command, is_running: true, is_stopped: false, pending, signals, ended })
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
        self.see_stop(front).await;
        let mut status = None;
        let all = family::reap(|pid, how| {
            if pid == self.command {
                status = Some(how);
            }
        });
        if let Some(status) = status {
            self.is_running = false;
            self.watched.teller.command_ended();
            speaking::introduce(&self.watched).await;
            let is_last = self.watched.listener.readiness().is_ok_and(|readiness| readiness.is_over);
            // If nobody hears it, nobody needs it.
            let _ = front.send(&Report::Ended { how: how(status), is_last }).await;
            self.wake_front();
        }
        all && !self.is_running
    }

    /// A command that stops takes the front with it, and one that goes on or is gone wakes it.
    async fn see_stop(&mut self, front: &mut Link) {
        if !self.is_running {
            return;
        }
        if let Some(signal) = family::stopped(self.command) {
            self.is_stopped = true;
            let _ = front.send(&Report::Stopped { signal, at: now() }).await;
        } else if self.is_stopped && !family::is_stopped(self.command) {
            self.wake_front();
        }
    }

    fn wake_front(&mut self) {
        if std::mem::take(&mut self.is_stopped)
            && let Some(front) = self.front.filter(|front| getppid() == Some(*front))
        {
            let _ = kill_process(front, Signal::CONT);
        }
    }

    fn send(&self, signal: Option<Signal>) {
        // Who goes on already, with its group, need not be told again.
        let is_needed = |signal: &Signal| *signal != Signal::CONT || family::is_stopped(self.command);
        if let Some(signal) = signal.filter(|_| self.is_running).filter(is_needed) {
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
