//! Ends what a worker that is gone has left behind, and sees it gone.
//!
//! Each pipeline has a watchdog that ends it by itself. Here that is only made quicker, and whatever a watchdog that was
//! killed too has left behind is found by its environment.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;
use std::{fmt, fs, io};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal, test_kill_process};
use tenure_api::IntentSessionView;
use tenure_host::process::ProcessStat;

use super::leader::WorkerIdentity;
use crate::process_supervisor;
use crate::process_supervisor::now;

const ROUND: Duration = Duration::from_millis(20);
/// How long a watchdog has to find out that nobody is left: microseconds.
const WATCHDOG_TIMEOUT: u64 = 2_000_000;
/// When processes that do not go are given up: microseconds.
const TERMINATION_TIMEOUT: u64 = 15_000_000;

/// What became of the sessions whose processes had to go.
#[derive(Debug, Default)]
pub struct TerminationOutcome {
    pub gone: Vec<String>,
    /// Of these somebody lives on, with these numbers.
    pub stuck: Vec<(String, Vec<i32>)>,
}

struct SessionProcesses {
    session: String,
    recorded: Option<PipelineProcesses>,
    /// Whether nobody was found when it was last looked for. While one program takes the place of another, the system
    /// does not show its environment: only who is not found twice is gone.
    was_empty: bool,
}

/// Ends everybody who belongs to one of these sessions, or to one of those `beside` of which nothing but the name is known,
/// and waits until they are gone.
pub async fn terminate(sessions: &[IntentSessionView], beside: &[String]) -> io::Result<TerminationOutcome> {
    let of = |session: &IntentSessionView| SessionProcesses {
        session: session.session_id.clone(),
        recorded: session.process.as_deref().and_then(PipelineProcesses::parse),
        was_empty: false,
    };
    let beside = beside.iter().filter(|name| sessions.iter().all(|session| session.session_id != **name));
    let named =
        |session: &String| SessionProcesses { session: session.clone(), recorded: None, was_empty: false };
    let mut families: Vec<SessionProcesses> = sessions.iter().map(of).chain(beside.map(named)).collect();
    let (mut ended, started_at) = (TerminationOutcome::default(), now());
    loop {
        let processes = ProcessSnapshot::all()?;
        let shown = sessions_of(&processes);
        let is_late = now().saturating_sub(started_at) >= WATCHDOG_TIMEOUT;
        let mut remaining = Vec::new();
        families.retain_mut(|group| {
            let found = group.live_processes(&processes, &shown);
            let was_empty = std::mem::replace(&mut group.was_empty, found.is_empty());
            if found.is_empty() && was_empty {
                ended.gone.push(group.session.clone());
                return false;
            }
            group.kill(&found, is_late);
            remaining.push((group.session.clone(), found.iter().map(|process| process.number).collect()));
            true
        });
        if families.is_empty() {
            return Ok(ended);
        }
        if now().saturating_sub(started_at) >= TERMINATION_TIMEOUT {
            ended.stuck = remaining;
            return Ok(ended);
        }
        tokio::time::sleep(ROUND).await;
    }
}

/// Which session each process has in its environment. Read once for all sessions: with a thousand of them, to read it for
/// each would take longer than the guard lasts, which is not renewed meanwhile.
fn sessions_of(processes: &[ProcessSnapshot]) -> HashMap<i32, String> {
    let of = |process: &ProcessSnapshot| Some((process.number, process.variable("TENURE_SESSION")?));
    processes.iter().filter_map(of).collect()
}

impl SessionProcesses {
    /// Who of these belongs to it and lives: whoever was recorded, has the session in its environment, or descends from
    /// such a one.
    fn live_processes(
        &self,
        processes: &[ProcessSnapshot],
        shown: &HashMap<i32, String>,
    ) -> Vec<ProcessSnapshot> {
        let us = getpid().as_raw_nonzero().get();
        let is_root = |process: &&ProcessSnapshot| {
            self.is_recorded(process) || shown.get(&process.number) == Some(&self.session)
        };
        let mut found: HashSet<i32> = processes.iter().filter(is_root).map(|root| root.number).collect();
        loop {
            let before = found.len();
            let below = processes.iter().filter(|process| found.contains(&process.parent));
            let below: Vec<i32> = below.map(|process| process.number).collect();
            found.extend(below);
            if found.len() == before {
                break;
            }
        }
        let is_alive = |process: &&ProcessSnapshot| {
            found.contains(&process.number) && !process.is_dead && process.number != us
        };
        processes.iter().filter(is_alive).copied().collect()
    }

    fn is_recorded(&self, process: &ProcessSnapshot) -> bool {
        self.recorded.is_some_and(|recorded| {
            [recorded.command, recorded.watchdog].contains(&(process.number, process.started))
        })
    }

    /// Kills everybody but watchdogs, to whom orphans fall: those go when nobody is left, or are killed last.
    fn kill(&self, found: &[ProcessSnapshot], is_late: bool) {
        let (watchdogs, descendants): (Vec<_>, Vec<_>) =
            found.iter().partition(|process| self.is_watchdog(process));
        for process in &descendants {
            send(process, Signal::KILL);
        }
        for watchdog in &watchdogs {
            // One that was stopped sees nothing before it goes on.
            send(watchdog, if is_late && descendants.is_empty() { Signal::KILL } else { Signal::CONT });
        }
    }

    fn is_watchdog(&self, process: &ProcessSnapshot) -> bool {
        let is_recorded =
            self.recorded.is_some_and(|recorded| recorded.watchdog == (process.number, process.started));
        is_recorded || has_watchdog_name(process)
    }
}

/// Whether a process was started as a watchdog.
pub fn has_watchdog_name(process: &ProcessSnapshot) -> bool {
    process.arguments().get(1).is_some_and(|name| name == process_supervisor::SUBCOMMAND.as_bytes())
}

/// Sends a signal to this very process, and to nobody who has its number by now.
fn send(process: &ProcessSnapshot, signal: Signal) {
    let Some(number) = Pid::from_raw(process.number) else { return };
    let Ok(handle) = pidfd_open(number, PidfdFlags::empty()) else { return };
    if ProcessSnapshot::find(process.number).is_some_and(|found| found.started == process.started) {
        let _ = pidfd_send_signal(handle, signal);
    }
}

/// Under this name a process finds the worker that started it.
pub const VARIABLE: &str = "TENURE_WORKER";

/// The sessions of such processes on this machine, as far as they are of the same server: `lease` is one of its leases.
pub fn unsupervised_sessions(
    identity: &WorkerIdentity,
    lease: &str,
    processes: &[ProcessSnapshot],
) -> Vec<String> {
    // All leases of one ledger begin alike.
    let ledger = |lease: &str| lease.rsplit_once('-').map(|(ledger, _)| ledger.to_owned());
    let own = ledger(lease);
    let is_of_server = |process: &&ProcessSnapshot| {
        let lease = process.variable("TENURE_LEASE");
        own.is_some() && lease.and_then(|lease| ledger(&lease)) == own
    };
    let of_session = |process: &ProcessSnapshot| process.variable("TENURE_SESSION");
    let live = || processes.iter().filter(|process| !process.is_dead);
    let watched: BTreeSet<String> =
        live().filter(|process| has_watchdog_name(process)).filter_map(of_session).collect();
    let has_dead_worker = |process: &&ProcessSnapshot| {
        let worker = process.variable(VARIABLE).and_then(|worker| WorkerIdentity::parse(&worker));
        worker.is_some_and(|worker| identity.is_known_dead(&worker))
    };
    let abandoned: BTreeSet<String> =
        live().filter(is_of_server).filter(has_dead_worker).filter_map(of_session).collect();
    abandoned.difference(&watched).cloned().collect()
}

/// A pipeline's command and its watchdog, each by its number and the time of its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipelineProcesses {
    /// The command, which leads a group.
    pub command: (i32, u64),
    pub watchdog: (i32, u64),
}

impl PipelineProcesses {
    /// Both, as they are now. One that is gone already has no time.
    pub fn capture(command: i32, watchdog: i32) -> Self {
        let with_start = |number| {
            (number, ProcessSnapshot::find(number).map_or(0, |process: ProcessSnapshot| process.started))
        };
        Self { command: with_start(command), watchdog: with_start(watchdog) }
    }

    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers: Vec<u64> = text
            .split(|letter: char| !letter.is_ascii_digit())
            .filter_map(|part| part.parse().ok())
            .collect();
        let [command, watchdog, command_start, watchdog_start] = numbers[..] else { return None };
        let number = |number| i32::try_from(number).ok();
        Some(Self {
            command: (number(command)?, command_start),
            watchdog: (number(watchdog)?, watchdog_start),
        })
    }
}

impl fmt::Display for PipelineProcesses {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command: (command, command_start), watchdog: (watchdog, watchdog_start) } = self;
        write!(
            formatter,
            "pid {command} (watchdog {watchdog}), started at {command_start} and {watchdog_start}"
        )
    }
}

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
    use std::process::{Command, Stdio};

    use super::super::testing::sample_session;
    use super::*;

    #[tokio::test]
    async fn only_processes_with_the_session_in_their_environment_are_killed() {
        let (mine, other) = (format!("s-{}", std::process::id()), "another");
        let mut script = Command::new("sh");
        script.args(["-c", "trap '' TERM; env -u TENURE_SESSION setsid sleep 60 & sleep 60 & echo; wait"]);
        let mut ours = script.env("TENURE_SESSION", &mine).stdout(Stdio::piped()).spawn().unwrap();
        // Until both were started, and so can be found.
        std::io::Read::read_exact(&mut ours.stdout.take().unwrap(), &mut [0]).unwrap();
        let mut theirs = Command::new("sleep").arg("60").env("TENURE_SESSION", other).spawn().unwrap();
        let burying = std::thread::spawn(move || ours.wait().unwrap());
        let ended = terminate(&[sample_session(&mine, "RUNNING")], &[]).await.unwrap();
        assert_eq!((ended.gone, ended.stuck), (vec![mine.clone()], Vec::new()));
        burying.join().unwrap();
        assert!(theirs.try_wait().unwrap().is_none());
        theirs.kill().unwrap();
        theirs.wait().unwrap();
        let session_processes = SessionProcesses { session: mine, recorded: None, was_empty: false };
        let processes = ProcessSnapshot::all().unwrap();
        assert_eq!(session_processes.live_processes(&processes, &sessions_of(&processes)), Vec::new());
    }

    #[tokio::test]
    async fn recorded_process_is_matched_by_pid_and_start_time() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let number = i32::try_from(child.id()).unwrap();
        let recorded = PipelineProcesses::capture(number, number);
        let mut view = sample_session("s-recorded", "RUNNING");
        let another = PipelineProcesses { command: (number, 1), watchdog: (number, 1) };
        view.process = Some(another.to_string());
        assert_eq!(terminate(&[view.clone()], &[]).await.unwrap().gone, ["s-recorded"]);
        assert!(child.try_wait().unwrap().is_none(), "somebody else has the number");
        view.process = Some(PipelineProcesses { watchdog: (1, 1), ..recorded }.to_string());
        assert_eq!(terminate(&[view], &[]).await.unwrap().gone, ["s-recorded"]);
        child.wait().unwrap();
    }

    #[test]
    fn process_without_worker_and_watchdog_is_found() {
        let own = WorkerIdentity::current().unwrap();
        // A number that somebody else has by now: us.
        let dead = own.to_string().rsplit_once(':').map(|(before, _)| format!("{before}:1")).unwrap();
        let start = |session: &str, worker: &str, lease: &str| {
            let mut command = Command::new("sleep");
            command.arg("60").env("TENURE_SESSION", session).env(VARIABLE, worker).env("TENURE_LEASE", lease);
            command.spawn().unwrap()
        };
        let name = |what: &str| format!("{what}-{}", std::process::id());
        let mut orphaned = start(&name("left"), &dead, "0000abcd-17");
        let mut kept = start(&name("kept"), &own.to_string(), "0000abcd-18");
        let mut foreign = start(&name("foreign"), &dead, "0000abce-17");
        let found = || unsupervised_sessions(&own, "0000abcd-1", &ProcessSnapshot::all().unwrap());
        // While one program takes the place of another, the system shows no environment.
        assert!((0..10_000).any(|_| found().contains(&name("left"))));
        assert!(!found().contains(&name("kept")), "its worker lives");
        assert!(!found().contains(&name("foreign")), "it is of another server");
        for child in [&mut orphaned, &mut kept, &mut foreign] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(!found().contains(&name("left")));
    }

    #[test]
    fn process_record_round_trips() {
        let recorded = PipelineProcesses { command: (123, 9_876), watchdog: (122, 9_870) };
        assert_eq!(recorded.to_string(), "pid 123 (watchdog 122), started at 9876 and 9870");
        assert_eq!(PipelineProcesses::parse(&recorded.to_string()), Some(recorded));
        for text in ["", "pid 1", "pid 99999999999 (watchdog 1), started at 1 and 2"] {
            assert_eq!(PipelineProcesses::parse(text), None, "{text}");
        }
    }

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
