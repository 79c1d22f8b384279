//! A supervised command, from its start until none of its descendants is left.

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
use tenure_host::interprocess::{CommandExit, MessageStream, Signals, fd_transfer};
use tenure_host::process::AsyncExitWatch;
use tenure_seccomp::Listener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, mpsc};

use super::attribution::CallAttribution;
use super::path_classifier::PathClassifier;
use super::reporter::StderrReporter;
use super::{
    MAX_CONCURRENT_CALLS, RESPONSE_TIMEOUT, SupervisorState, answer, change_time, listener_loop,
    orphan_processes, process_tree, requests, task, unavailable_message,
};
use crate::protocol::{SupervisorCommand, SupervisorReport};
use crate::session_selector::SessionSelector;
use crate::{ConnectFilesApi, EXEC_SUBCOMMAND};

/// How often is looked again where somebody could not be let go of.
const REAP_RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// How often is looked whether agents below us live.
const LIVENESS_CHECK_INTERVAL: Duration = Duration::from_millis(500);

pub struct SyscallSupervisor {
    state: Arc<SupervisorState>,
    launcher: Option<Pid>,
    command: Pid,
    /// Until it ends.
    is_running: bool,
    /// It was stopped, and the launcher with it.
    is_stopped: bool,
    pending: mpsc::UnboundedReceiver<listener_loop::PendingCall>,
    signals: Signals,
    ended: tokio::signal::unix::Signal,
}

impl SyscallSupervisor {
    pub fn start(
        naming: SessionSelector,
        command: &[OsString],
        [input, output, errors]: [OwnedFd; 3],
        inherited: &[i32],
        connect: ConnectFilesApi,
    ) -> io::Result<Self> {
        // What a terminal sends is for the command; we outlive it.
        let signals = Signals::catch_all()?;
        let ended = signal(SignalKind::child())?;
        // Whoever loses its parent falls to us, and stays watched.
        set_child_subreaper(Some(getpid()))?;
        let (mut ours, theirs) = UnixStream::pair()?;
        let mut process = Command::new("/proc/self/exe");
        process.arg0("tenure").arg(EXEC_SUBCOMMAND).args(command).stdin(OwnedFd::from(theirs));
        // With whoever started us: what is sent to that group is for the command, and not for us.
        let launcher = getppid();
        match launcher
            .map(|launcher| getpgid(Some(nix::unistd::Pid::from_raw(launcher.as_raw_nonzero().get()))))
        {
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
        fd_transfer::send(&ours, &[input.as_fd(), output.as_fd(), errors.as_fd()])?;
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
        let watched = Arc::new(SupervisorState {
            listener: Listener::new(listener),
            attribution: CallAttribution::detect(),
            scope: PathClassifier::default(),
            grants: Mutex::default(),
            client: connect(RESPONSE_TIMEOUT).map_err(unavailable_message),
            reporter: StderrReporter::new(File::from(errors)),
            selector: naming,
            own_name: format!("guard-{}", std::process::id()),
            command: child.id(),
            task: task(command),
            // It has not read anything yet.
            started_at: change_time::wall_clock_nanoseconds(),
            is_registered: AtomicBool::new(false),
            call_permits: Semaphore::new(MAX_CONCURRENT_CALLS),
        });
        let (sender, pending) = mpsc::unbounded_channel();
        listener_loop::spawn(watched.clone(), sender)?;
        ours.write_all(b".")?;
        let command = Pid::from_child(&child);
        Ok(Self {
            state: watched,
            launcher,
            command,
            is_running: true,
            is_stopped: false,
            pending,
            signals,
            ended,
        })
    }

    /// Watches until nobody is left.
    pub async fn run(mut self, mut link: MessageStream) -> io::Result<()> {
        let above = AsyncExitWatch::new(self.state.attribution.ancestor_agent());
        let mut has_launcher = true;
        let mut looks = tokio::time::interval(LIVENESS_CHECK_INTERVAL);
        loop {
            tokio::select! {
                pending = self.pending.recv() => match pending {
                    Some(pending) => drop(tokio::spawn(answer::answer(self.state.clone(), pending))),
                    // Nobody is left whom we watch. The last one may not have been let go of.
                    None => {
                        if !self.state.listener.readiness().is_ok_and(|readiness| readiness.is_closed) {
                            // Nothing can be heard any more: whoever calls would wait for ever.
                            process_tree::end_all_descendants();
                        }
                        while !self.reap_ended(&mut link).await {
                            tokio::time::sleep(REAP_RETRY_INTERVAL).await;
                        }
                        return Ok(());
                    }
                },
                _ = self.ended.recv() => drop(self.reap_ended(&mut link).await),
                order = link.receive::<SupervisorCommand>(), if has_launcher => match order {
                    Some(SupervisorCommand::Signal(number)) => self.send(Signal::from_named_raw(number)),
                    None => {
                        has_launcher = false;
                        // Who was started by us was killed: the command with it, as it would have been.
                        self.send(Some(Signal::KILL));
                    }
                },
                _ = self.signals.next() => {}
                // Its agent is gone, and with it the right to change anything.
                () = above.wait() => {
                    process_tree::end_all_descendants();
                    tokio::time::sleep(REAP_RETRY_INTERVAL).await;
                    self.reap_ended(&mut link).await;
                }
                _ = looks.tick() => {
                    self.reap_ended(&mut link).await;
                    orphan_processes::terminate_orphan_processes(&self.state);
                }
            }
        }
    }

    /// Lets go of who ended. Says whether the command is among those.
    async fn reap_ended(&mut self, link: &mut MessageStream) -> bool {
        self.report_stop(link).await;
        let mut status = None;
        let all = process_tree::reap(|pid, how| {
            if pid == self.command {
                status = Some(how);
            }
        });
        if let Some(status) = status {
            self.is_running = false;
            self.state.reporter.command_ended();
            requests::register_caller(&self.state).await;
            let is_last = self.state.listener.readiness().is_ok_and(|readiness| readiness.is_closed);
            // If nobody hears it, nobody needs it.
            let _ = link.send(&SupervisorReport::Ended { how: how(status), is_last }).await;
            self.wake_launcher();
        }
        all && !self.is_running
    }

    /// A command that stops takes the launcher with it, and one that goes on or is gone wakes it.
    async fn report_stop(&mut self, link: &mut MessageStream) {
        if !self.is_running {
            return;
        }
        if let Some(signal) = process_tree::signal_that_stopped(self.command) {
            self.is_stopped = true;
            let _ = link.send(&SupervisorReport::Stopped { signal, at: now() }).await;
        } else if self.is_stopped && !process_tree::is_stopped(self.command) {
            self.wake_launcher();
        }
    }

    fn wake_launcher(&mut self) {
        if std::mem::take(&mut self.is_stopped)
            && let Some(launcher) = self.launcher.filter(|launcher| getppid() == Some(*launcher))
        {
            let _ = kill_process(launcher, Signal::CONT);
        }
    }

    fn send(&self, signal: Option<Signal>) {
        // Who goes on already, with its group, need not be told again.
        let is_needed = |signal: &Signal| *signal != Signal::CONT || process_tree::is_stopped(self.command);
        if let Some(signal) = signal.filter(|_| self.is_running).filter(is_needed) {
            let _ = kill_process(self.command, signal);
        }
    }
}

fn how(status: WaitStatus) -> CommandExit {
    match status.exit_status() {
        Some(code) => CommandExit::Code(code),
        None => CommandExit::Signal(status.terminating_signal().unwrap_or_default()),
    }
}

/// The listener, or why there is none.
fn receive_listener(stream: &mut UnixStream, child: &mut Child) -> io::Result<OwnedFd> {
    match fd_transfer::receive(stream) {
        Ok([listener]) => Ok(listener),
        Err(error) => {
            let mut number = [0; 4];
            let why = stream.read_exact(&mut number).map(|()| i32::from_le_bytes(number));
            let _ = child.wait();
            Err(why.map_or(error, io::Error::from_raw_os_error))
        }
    }
}
