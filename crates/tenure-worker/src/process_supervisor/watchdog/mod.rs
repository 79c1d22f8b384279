//! The watchdog: ends a command in time, even if the process that keeps its lease fails: `tenure run`, or the worker.
//!
//! It is the command's parent, in a process group of its own: a stop of that process or of its job, Ctrl-Z and the end of the
//! terminal do not stop it. It receives each new deadline over a connection; when that closes, it ends the command too.

mod termination_plan;

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::{fs, io};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpgid, getpid, kill_process, kill_process_group,
    set_child_subreaper, waitid,
};
use tenure_core::kernel::TickDuration;
use tenure_host::interprocess::{CommandExit, MessageStream, Signals, fd_transfer};
use tenure_host::process::ProcessStat;
use tokio::signal::unix::{Signal as Caught, SignalKind, signal};

pub use self::termination_plan::TerminationMargins;
use self::termination_plan::{TerminationPlan, TerminationStep};
use super::protocol::{DescendantPolicy, WatchdogCommand, WatchdogReport};
use super::{Timer, now};

/// How often to look for somebody who lives on, while everybody is being killed: microseconds.
const KILL_ROUND_MICROSECONDS: u64 = 20_000;

/// What its keeper calls it. A name that nobody types.
pub const SUBCOMMAND: &str = "__watchdog";

/// Watches over one command, until it is gone.
pub fn run(command: &[OsString]) -> io::Result<()> {
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let standard = fd_transfer::receive(&stream)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { watch(MessageStream::new(stream)?, standard, command).await })
}

async fn watch(mut link: MessageStream, standard: [OwnedFd; 3], command: &[OsString]) -> io::Result<()> {
    ProcessTree::become_subreaper()?;
    let changes = signal(SignalKind::child())?;
    let signals = Signals::catch_all()?;
    let timer = Timer::new()?;
    // Without an order nothing was started, and nothing has to be ended.
    let Some(WatchdogCommand::Start { deadline, grace, reserve, leaves, environment }) = link.receive().await
    else {
        return Ok(());
    };
    let plan = TerminationPlan::new(
        TerminationMargins { grace: TickDuration(grace), reserve: TickDuration(reserve) },
        deadline,
    );
    if plan.wake_at().is_none_or(|at| at <= now()) {
        return link.send(&WatchdogReport::TooLate).await;
    }
    let [input, output, errors] = standard;
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).envs(environment).stdin(input).stdout(output).stderr(errors);
    let processes = match ProcessTree::start(&mut command) {
        Ok(processes) => processes,
        Err(error) => return link.send(&WatchdogReport::NotStarted { error: error.raw_os_error() }).await,
    };
    // It holds the standard descriptors, which somebody may wait to see closed.
    drop(command);
    let (is_connected, is_lost) = (true, false);
    let mut watch =
        Watchdog { link, processes, plan, leaves, signals, changes, timer, is_connected, is_lost };
    watch.send_report(WatchdogReport::Started(watch.processes.group())).await;
    watch.run_until_exit().await
}

struct Watchdog {
    link: MessageStream,
    processes: ProcessTree,
    plan: TerminationPlan,
    leaves: DescendantPolicy,
    signals: Signals,
    changes: Caught,
    timer: Timer,
    is_connected: bool,
    /// Whether the lease is lost, or nobody is left who could keep it.
    is_lost: bool,
}

impl Watchdog {
    async fn run_until_exit(&mut self) -> io::Result<()> {
        loop {
            let at = self.plan.wake_at().unwrap_or_else(|| now().saturating_add(KILL_ROUND_MICROSECONDS));
            tokio::select! {
                order = self.link.receive(), if self.is_connected => self.handle_command(order),
                _ = self.changes.recv() => {}
                () = self.timer.wait_until(Some(at)) => {}
                // What is meant for the command comes through its keeper.
                _ = self.signals.next() => {}
            }
            while let Some(act) = self.plan.next_step(now()) {
                self.act(act);
                // A session whose command has ended by itself lost nothing; whom it left behind has to go, that is all.
                let is_rest = self.leaves == DescendantPolicy::EndAll && self.processes.exit().is_some();
                if !std::mem::replace(&mut self.is_lost, true) && !is_rest {
                    self.send_report(WatchdogReport::Ending).await;
                }
            }
            if self.check_processes().await {
                break;
            }
        }
        // Until the keeper has taken back the terminal, the group's number must not be anybody else's.
        while self.is_connected && self.link.receive::<WatchdogCommand>().await.is_some() {}
        Ok(())
    }

    fn handle_command(&mut self, order: Option<WatchdogCommand>) {
        let act = match order {
            Some(WatchdogCommand::Deadline(deadline)) => {
                self.plan.move_deadline(deadline);
                None
            }
            Some(WatchdogCommand::Signal(number)) => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    self.processes.signal(signal);
                }
                None
            }
            Some(WatchdogCommand::Start { .. }) => None,
            Some(WatchdogCommand::Kill) => {
                self.is_lost = true;
                self.plan.kill(now())
            }
            Some(WatchdogCommand::End) | None => {
                self.is_connected &= order.is_some();
                self.is_lost = true;
                self.plan.terminate(now())
            }
        };
        if let Some(act) = act {
            self.act(act);
        }
    }

    fn act(&self, act: TerminationStep) {
        match act {
            TerminationStep::Terminate => {
                self.processes.signal(Signal::TERM);
                // Who is stopped hears nothing before it goes on.
                self.processes.signal(Signal::CONT);
            }
            TerminationStep::Kill => self.processes.kill(),
        }
    }

    /// Looks at the processes. True: all of them are gone, and the keeper knows.
    async fn check_processes(&mut self) -> bool {
        if let Some(signal) = self.processes.poll() {
            self.send_report(WatchdogReport::Stopped(signal.as_raw())).await;
        }
        if self.plan.is_killed() {
            self.processes.kill();
        }
        let Some(ended) = self.processes.exit() else { return false };
        // What the command left behind must not go on without the lease: neither what stayed in its group nor, when
        // the lease is lost or somebody may hold the same next, what has left it.
        let ends_descendants = self.is_lost || self.leaves == DescendantPolicy::EndAll;
        let act = if self.processes.has_group_members() {
            self.plan.terminate(now())
        } else if ends_descendants && self.processes.has_descendants() {
            self.plan.kill(now())
        } else {
            self.send_report(WatchdogReport::Ended(ended)).await;
            return true;
        };
        if let Some(act) = act {
            self.act(act);
        }
        false
    }

    async fn send_report(&mut self, report: WatchdogReport) {
        if self.is_connected && self.link.send(&report).await.is_err() {
            self.is_connected = false;
        }
    }
}

/// A command that was started, with its descendants.
#[derive(Debug)]
pub struct ProcessTree {
    /// The command itself, which leads the group. It is not buried while this exists, so the number stays its own.
    leader: Pid,
    exit: Option<CommandExit>,
}

impl ProcessTree {
    /// From now on, whose parent dies among our descendants becomes our child.
    pub fn become_subreaper() -> io::Result<()> {
        Ok(set_child_subreaper(Some(getpid()))?)
    }

    /// Starts a command in a group of its own.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let number = i32::try_from(child.id()).expect("the system counts processes in an i32");
        Ok(Self { leader: Pid::from_raw(number).expect("no process has the number 0"), exit: None })
    }

    /// The number of the command's group.
    pub fn group(&self) -> i32 {
        self.leader.as_raw_nonzero().get()
    }

    /// How the command ended, if it has.
    pub fn exit(&self) -> Option<CommandExit> {
        self.exit
    }

    /// Sends a signal to everybody in the command's group.
    pub fn signal(&self, signal: Signal) {
        // Fails only if all of them are gone.
        let _ = kill_process_group(self.leader, signal);
    }

    /// Kills the group, and those who left it. Their children fall to us as they die: look, and kill again.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
        for child in self.children() {
            let _ = kill_process(child, Signal::KILL);
        }
    }

    /// Looks at what has happened: buries orphans, and says by which signal the command was stopped.
    pub fn poll(&mut self) -> Option<Signal> {
        for child in self.children() {
            let _ = waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
        let kept = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if let Ok(Some(status)) = waitid(WaitId::Pid(self.leader), kept) {
            let by_signal = status.terminating_signal().map(CommandExit::Signal);
            self.exit = by_signal.or(status.exit_status().map(CommandExit::Code));
        }
        let stopped = waitid(WaitId::Pid(self.leader), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
        let number = stopped.ok().flatten()?.stopping_signal()?;
        Signal::from_named_raw(number)
    }

    /// Whether anybody lives who never left the group.
    pub fn has_group_members(&self) -> bool {
        self.children().into_iter().any(|child| getpgid(Some(child)) == Ok(self.leader))
    }

    /// Whether anybody lives who descends from the command.
    pub fn has_descendants(&self) -> bool {
        !self.children().is_empty()
    }

    /// Our children but for the command.
    fn children(&self) -> HashSet<Pid> {
        let mut children = all_children();
        children.remove(&self.leader);
        children
    }
}

pub fn all_children() -> HashSet<Pid> {
    children_of_threads().unwrap_or_else(|_| children_by_search())
}

/// Our children, as the kernel lists them for each of our threads.
fn children_of_threads() -> io::Result<HashSet<Pid>> {
    let mut children = HashSet::new();
    for thread in fs::read_dir("/proc/self/task")? {
        let list = fs::read_to_string(thread?.path().join("children"))?;
        children.extend(list.split_whitespace().filter_map(|number| Pid::from_raw(number.parse().ok()?)));
    }
    Ok(children)
}

/// The same for kernels without that list.
fn children_by_search() -> HashSet<Pid> {
    let us = u32::try_from(getpid().as_raw_nonzero().get()).ok();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_ours = |number: &u32| ProcessStat::of(*number).map(|stat| stat.parent) == us;
    numbers.filter(is_ours).filter_map(|number| Pid::from_raw(i32::try_from(number).ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_list_children_agree() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let number = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let both = (children_of_threads().unwrap().contains(&number), children_by_search().contains(&number));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(both, (true, true));
    }
}
