//! How a process becomes the one worker.

use std::time::Duration;

use tenure_api::{LeaderLockRequest, Problem};
use tenure_client::local_deadline;
use tenure_core::kernel::TickDuration;

use super::WorkerExit;
use super::identity::WorkerIdentity;
use super::server_handle::{ServerHandle, WorkerError};
use crate::process_supervisor::timer::now;
use crate::terminal_message::print_stderr;

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
