//! What the system says about processes: `/proc`.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use tenure_gate::process::ProcessStat;

/// One process, as it was a moment ago. A number comes again; a number with the time of its start does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessSnapshot {
    pub number: i32,
    pub parent: i32,
    pub group: i32,
    /// When it was started, in ticks since the machine was.
    pub started: u64,
    /// Whether it is dead, and only waits to be buried.
    pub is_dead: bool,
}

impl ProcessSnapshot {
    /// The process with this number. Nothing: the system shows none.
    pub fn find(number: i32) -> Option<Self> {
        let stat = ProcessStat::of(u32::try_from(number).ok()?)?;
        let is_dead = stat.is_dead() && !has_threads(number);
        let parent = i32::try_from(stat.parent).ok()?;
        Some(Self { number, parent, group: stat.group, started: stat.started, is_dead })
    }

    /// Every process that the system shows.
    pub fn all() -> io::Result<Vec<Self>> {
        let entries = fs::read_dir("/proc")?.flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        Ok(numbers.filter_map(Self::find).collect())
    }

    /// A variable of the environment that it was started with, if the system shows it.
    pub fn variable(&self, name: &str) -> Option<String> {
        let environment = fs::read(format!("/proc/{}/environ", self.number)).ok()?;
        let prefix = format!("{name}=");
        let value =
            environment.split(|byte| *byte == 0).find_map(|line| line.strip_prefix(prefix.as_bytes()));
        value.and_then(|value| String::from_utf8(value.to_vec()).ok())
    }

    /// Its arguments, if the system shows them.
    pub fn arguments(&self) -> Vec<Vec<u8>> {
        let line = fs::read(format!("/proc/{}/cmdline", self.number)).unwrap_or_default();
        line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
    }
}

/// Whether the process that had this number and was started then is surely gone.
pub fn is_gone(number: i32, started: u64) -> bool {
    let Some(id) = Pid::from_raw(number) else { return true };
    // The system may hide a process of another user, but it tells whether there is one.
    if test_kill_process(id) == Err(Errno::SRCH) {
        return true;
    }
    ProcessSnapshot::find(number).is_some_and(|process| process.started != started || process.is_dead)
}

/// A process whose first thread has ended looks dead, while others of its threads go on.
fn has_threads(number: i32) -> bool {
    fs::read_dir(format!("/proc/{number}/task")).is_ok_and(|threads| threads.count() > 1)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn process_is_identified_by_pid_and_start_time() {
        let us = i32::try_from(std::process::id()).unwrap();
        let found = ProcessSnapshot::find(us).unwrap();
        assert!(!is_gone(us, found.started));
        assert!(is_gone(us, found.started + 1), "somebody else had the number before");
    }

    #[test]
    fn zombie_process_is_gone() {
        let mut child = Command::new("sleep").arg("60").env("TENURE_SESSION", "s7").spawn().unwrap();
        let number = i32::try_from(child.id()).unwrap();
        let found = ProcessSnapshot::find(number).unwrap();
        assert_eq!(found.parent, i32::try_from(std::process::id()).unwrap());
        // While a program takes the place of another, the system shows neither's.
        let is_shown = || found.variable("TENURE_SESSION").as_deref() == Some("s7");
        assert!((0..1_000_000).any(|_| is_shown()));
        assert_eq!(found.arguments()[1], b"60");
        assert!(!is_gone(number, found.started));
        child.kill().unwrap();
        let id = rustix::process::WaitId::Pid(Pid::from_raw(number).unwrap());
        let kept = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(id, kept).unwrap();
        assert!(is_gone(number, found.started), "a zombie");
        child.wait().unwrap();
        assert!(is_gone(number, found.started));
    }
}
