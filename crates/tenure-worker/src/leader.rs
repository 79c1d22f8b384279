//! How a process becomes the one worker.

use std::time::Duration;
use std::{fmt, fs, io};

use tenure_api::{LeaderLockRequest, Problem};
use tenure_client::local_deadline;
use tenure_core::kernel::{BootId, ProcessId, TickDuration};
use tenure_host::process;
use tenure_host::stderr::print_stderr;

use super::WorkerExit;
use super::orphan_processes::is_gone;
use super::requests::{ServerHandle, WorkerError};
use crate::process_supervisor::now;

/// How often to look whether the guard is free.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub struct LeaderLock {
    pub fence: u64,
    pub lease: String,
    /// Until when it is believed in.
    pub valid_until: u64,
}

/// Waits until the guard is ours. Of one that is proven dead it is taken at once; for one that lives, or of whom nobody
/// here can know, it waits.
pub async fn acquire(
    server: &ServerHandle,
    identity: &WorkerIdentity,
    ttl_ms: u64,
) -> Result<LeaderLock, WorkerExit> {
    let (mut dead, mut last_message) = (None, None);
    loop {
        let is_reclaim = dead.is_some();
        let request = LeaderLockRequest { worker: identity.to_string(), ttl_ms, dead: dead.take() };
        let sent = now();
        let problem = match server.acquire_leader_lock(&request).await {
            Ok(guarded) => {
                let until = local_deadline(sent, TickDuration::from_millis(guarded.remaining_ms));
                return Ok(LeaderLock { fence: guarded.guard, lease: guarded.lease_id, valid_until: until });
            }
            Err(WorkerError::Held(problem)) => problem,
            Err(WorkerError::Rejected(problem)) => return Err(WorkerExit::Rejected(problem)),
            Err(error) => {
                print_once(&mut last_message, &format!("the guard cannot be asked for: {}", error.message()));
                tokio::time::sleep(POLL_INTERVAL).await;
                continue;
            }
        };
        dead = dead_holder(identity, &problem);
        if dead.is_some() && !is_reclaim {
            continue;
        }
        let holder = problem.holder.as_deref().unwrap_or("somebody");
        print_once(&mut last_message, &format!("{holder} is the worker; this one waits until that is gone"));
        let remaining = problem.remaining_ms.map_or(POLL_INTERVAL, Duration::from_millis);
        tokio::time::sleep(remaining.clamp(Duration::from_millis(10), POLL_INTERVAL)).await;
    }
}

fn dead_holder(identity: &WorkerIdentity, problem: &Problem) -> Option<String> {
    let holder = problem.holder.as_deref()?;
    identity.is_known_dead(&WorkerIdentity::parse(holder)?).then(|| holder.to_owned())
}

/// Says it, unless that is what was said last.
fn print_once(last_message: &mut Option<String>, what: &str) {
    if last_message.as_deref() != Some(what) {
        print_stderr(&format!("tenure: {what}\n"));
        *last_message = Some(what.to_owned());
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerIdentity {
    boot: BootId,
    /// In which namespace the pid counts.
    namespace: u64,
    pid: u32,
    /// When it was started, in ticks since the boot.
    started: u64,
}

impl WorkerIdentity {
    pub fn current() -> io::Result<Self> {
        let ProcessId { boot, namespace, pid, started, .. } = process::own()?;
        // A /proc of another namespace has other numbers.
        if fs::read_link("/proc/self")?.to_str() != Some(&pid.to_string()) {
            return Err(io::Error::other("/proc does not show this process"));
        }
        Ok(Self { boot, namespace, pid, started })
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix("worker:")?.split(':');
        let identity = Self {
            boot: BootId::parse(parts.next()?)?,
            namespace: parts.next()?.parse().ok()?,
            pid: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(identity)
    }

    /// Whether both are on one machine since it was started, and see the same processes.
    pub fn is_on_same_machine(&self, other: &Self) -> bool {
        self.boot == other.boot && self.namespace == other.namespace
    }

    /// Whether that worker is beside us and surely gone. Of one on another machine nobody here knows.
    pub fn is_known_dead(&self, other: &Self) -> bool {
        let pid = i32::try_from(other.pid);
        self.is_on_same_machine(other) && pid.is_ok_and(|pid| is_gone(pid, other.started))
    }
}

impl fmt::Display for WorkerIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { boot, namespace, pid, started } = self;
        write!(formatter, "worker:{boot}:{namespace}:{pid}:{started}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER_BOOT: &str = "00000000-0000-0000-0000-000000000000";

    #[test]
    fn worker_identity_tells_whether_the_process_is_alive() {
        let own = WorkerIdentity::current().unwrap();
        assert_eq!(WorkerIdentity::parse(&own.to_string()).as_ref(), Some(&own));
        assert!(!own.is_known_dead(&own));
        let before = WorkerIdentity { started: own.started - 1, ..own };
        assert!(own.is_known_dead(&before), "the number is somebody else's now");
        let elsewhere = WorkerIdentity { boot: BootId::parse(OTHER_BOOT).unwrap(), ..before };
        assert!(!own.is_known_dead(&elsewhere));
        assert!(!own.is_known_dead(&WorkerIdentity { namespace: 1, ..before }));
    }

    #[test]
    fn invalid_worker_identity_is_not_parsed() {
        let name = |rest: &str| WorkerIdentity::parse(&format!("worker:{OTHER_BOOT}{rest}"));
        assert!(name(":1:2:3").is_some());
        for rest in [":1:2", ":1:2:3:4", ":1:x:3", "", "0:1:2:3"] {
            assert_eq!(name(rest), None, "{rest}");
        }
        for text in ["", "worker:another-boot:1:2:3", "ann", &format!("work:{OTHER_BOOT}:1:2:3")] {
            assert_eq!(WorkerIdentity::parse(text), None, "{text}");
        }
    }
}
