//! Ends what a worker that is gone has left behind, and sees it gone.
//!
//! Each pipeline has a watchdog that ends it by itself. Here that is only made quicker, and whatever a watchdog that was
//! killed too has left behind is found by its environment.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};
use tenure_api::IntentSessionView;

use super::process_record::PipelineProcesses;
use super::process_snapshot::ProcessSnapshot;
use crate::process_supervisor;
use crate::process_supervisor::timer::now;

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
}
