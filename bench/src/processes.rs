//! Servers as child processes: started, watched, measured and ended by their process ids.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::error::{BenchError, IoContext as _};

/// How long a server may take to end before it is killed.
const STOP_SECONDS: i64 = 10;

/// A server that this program started. Dropping it ends the server and waits until it is gone.
pub struct ServerProcess {
    name: &'static str,
    child: Child,
    stop_signal: Signal,
    log: PathBuf,
}

impl ServerProcess {
    /// Starts `command` with its output in `log`. The server also ends if this program is killed.
    pub fn start(name: &'static str, command: &Command, log: PathBuf) -> Result<Self, BenchError> {
        let output = File::create(&log).while_trying(format!("creating {}", log.display()))?;
        let errors = output.try_clone().while_trying("opening a log")?;
        // The system sends this signal when the parent ends; setpriv then becomes the server, under the same id.
        let mut wrapped = Command::new("setpriv");
        wrapped.args(["--pdeathsig", "KILL"]);
        wrapped.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => wrapped.env(name, value),
                None => wrapped.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            wrapped.current_dir(folder);
        }
        wrapped.stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = wrapped.spawn().while_trying(format!("starting {name} with setpriv"))?;
        Ok(Self { name, child, stop_signal: Signal::TERM, log })
    }

    /// Ends the server with another signal than SIGTERM.
    pub fn with_stop_signal(mut self, signal: Signal) -> Self {
        self.stop_signal = signal;
        self
    }

    /// Fails with the end of the log if the server has ended.
    pub fn check_running(&mut self) -> Result<(), BenchError> {
        let Some(status) = self.child.try_wait().while_trying("looking at a server")? else { return Ok(()) };
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().rev().take(8).collect();
        let lines = lines.into_iter().rev().collect::<Vec<_>>().join("\n  ");
        Err(BenchError::environment(
            format!("{} ended with {status}:\n  {lines}", self.name),
            "run the program by hand with the same settings",
        ))
    }

    /// The end of the server if it has ended, which explains every other failure.
    pub fn explain(&mut self, failure: BenchError) -> BenchError {
        self.check_running().err().unwrap_or(failure)
    }

    /// The CPU time, so far, of the server and all its child processes.
    pub fn cpu_time(&self) -> Duration {
        cpu_time_of(&process_table(), self.child.id())
    }

    /// The resident memory of the server's main process.
    pub fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        resident_bytes(&status).unwrap_or(0)
    }

    /// Ends the server as a crash would: with SIGKILL.
    pub fn kill(mut self) -> Result<(), BenchError> {
        self.child.kill().while_trying(format!("killing {}", self.name))?;
        self.child.wait().while_trying(format!("killing {}", self.name)).map(drop)
    }

    fn stop(&mut self) -> rustix::io::Result<()> {
        let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) else { return Ok(()) };
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        kill_process(pid, self.stop_signal)?;
        // Readable once the process has ended.
        let timeout = Timespec { tv_sec: STOP_SECONDS, tv_nsec: 0 };
        poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timeout)).map(drop)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.stop();
        }
        // Without effect on a server that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `/proc/PID/stat` says of one process, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcessTimes {
    parent: u32,
    /// User and system time of its threads.
    own: u64,
    /// The same of the children that have ended.
    ended_children: u64,
}

impl ProcessTimes {
    fn parse(stat: &str) -> Option<Self> {
        // The name of the program is in parentheses, and may have any character in it.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            parent: u32::try_from(number(1)?).ok()?,
            own: number(11)? + number(12)?,
            ended_children: number(13)? + number(14)?,
        })
    }
}

/// All processes of the machine that can be read.
fn process_table() -> HashMap<u32, ProcessTimes> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let times = |id| ProcessTimes::parse(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?);
    ids.filter_map(|id| Some((id, times(id)?))).collect()
}

/// The CPU time of `root` and its descendants. Children that have ended are counted by their parents.
fn cpu_time_of(table: &HashMap<u32, ProcessTimes>, root: u32) -> Duration {
    let is_descendant = |mut id: u32| {
        while id != root {
            match table.get(&id) {
                Some(times) if times.parent != id && times.parent != 0 => id = times.parent,
                _ => return false,
            }
        }
        true
    };
    let own = table.iter().filter(|(id, _)| is_descendant(**id));
    let ticks: u64 = own.map(|(_, times)| times.own + times.ended_children).sum();
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// `VmRSS` in the text of `/proc/PID/status`.
fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1_024)
}

/// The bytes of all files in `folder` and below it.
pub fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_behind_a_program_name_with_spaces_and_parentheses() {
        let stat = "42 (a) b (c) S 7 42 42 0 -1 4194560 100 200 0 0 11 22 33 44 20 0 1 0 100 1000 10";
        let expected = ProcessTimes { parent: 7, own: 33, ended_children: 77 };
        assert_eq!(ProcessTimes::parse(stat), Some(expected));
        assert_eq!(ProcessTimes::parse("42 (a) S 7"), None);
    }

    #[test]
    fn descendants_count_and_other_processes_do_not() {
        let process = |parent, own, ended_children| ProcessTimes { parent, own, ended_children };
        let table = HashMap::from([
            (1, process(0, 1_000, 0)),
            (10, process(1, 1, 2)),
            (11, process(10, 4, 0)),
            (12, process(11, 8, 0)),
            (20, process(1, 500, 0)),
        ]);
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(cpu_time_of(&table, 10), Duration::from_secs_f64(15.0 / ticks));
    }

    #[test]
    fn resident_memory_is_in_kibibytes() {
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t    1024 kB\nThreads:\t1\n"), Some(1 << 20));
        assert_eq!(resident_bytes("Name:\tx\n"), None);
    }

    #[test]
    fn a_started_process_is_measured_and_gone_after_it_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sleep");
        command.arg("60");
        let mut process = ServerProcess::start("sleep", &command, folder.path().join("log")).unwrap();
        let id = process.child.id();
        process.check_running().unwrap();
        assert!(process_table().contains_key(&id));
        drop(process);
        assert!(!process_table().contains_key(&id));
    }

    #[test]
    fn a_server_that_ended_is_reported_with_the_end_of_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such port >&2; exit 3"]);
        let mut process = ServerProcess::start("server", &command, folder.path().join("log")).unwrap();
        let _ = process.child.wait();
        let error = process.check_running().unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.contains("no such port"), "{error}");
    }
}
