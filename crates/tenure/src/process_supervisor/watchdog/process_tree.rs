//! The command and whatever it starts.
//!
//! The watchdog is the command's parent, and the one to whom orphans among its descendants fall. So none of their
//! numbers can be taken by a stranger before the watchdog has buried them, and none of them can hide.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpgid, getpid, kill_process, kill_process_group,
    set_child_subreaper, waitid,
};
use tenure_gate::process::ProcessStat;

use super::super::protocol::CommandExit;

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
    children().unwrap_or_else(|_| children_by_search())
}

/// Our children, as the kernel lists them for each of our threads.
fn children() -> io::Result<HashSet<Pid>> {
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
        let both = (children().unwrap().contains(&number), children_by_search().contains(&number));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(both, (true, true));
    }
}
