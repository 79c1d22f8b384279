//! How a process becomes the one worker.

use std::time::Duration;

use tenure_api::{Problem, TakeGuard};
use tenure_client::believed_until;
use tenure_core::kernel::Span;

use super::Over;
use super::asked::{Asked, Trouble};
use super::identity::Identity;
use crate::message::tell;
use crate::watched::clock::now;

/// How often to look whether the guard is free.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub struct Guard {
    pub fence: u64,
    pub lease: String,
    /// Until when it is believed in.
    pub until: u64,
}

/// Waits until the guard is ours. Of one that is proven dead it is taken at once; for one that lives, or of whom nobody
/// here can know, it waits.
pub async fn take(asked: &Asked, identity: &Identity, ttl_ms: u64) -> Result<Guard, Over> {
    let (mut dead, mut said) = (None, None);
    loop {
        let is_reclaim = dead.is_some();
        let request = TakeGuard { worker: identity.to_string(), ttl_ms, dead: dead.take() };
        let sent = now();
        let problem = match asked.guard(&request).await {
            Ok(guarded) => {
                let until = believed_until(sent, Span::from_millis(guarded.remaining_ms));
                return Ok(Guard { fence: guarded.guard, lease: guarded.lease_id, until });
            }
            Err(Trouble::Held(problem)) => problem,
            Err(Trouble::Refused(problem)) => return Err(Over::Refused(problem)),
            Err(trouble) => {
                say(&mut said, &format!("the guard cannot be asked for: {}", trouble.text()));
                tokio::time::sleep(LOOK).await;
                continue;
            }
        };
        dead = dead_holder(identity, &problem);
        if dead.is_some() && !is_reclaim {
            continue;
        }
        let holder = problem.holder.as_deref().unwrap_or("somebody");
        say(&mut said, &format!("{holder} is the worker; this one waits until that is gone"));
        let left = problem.remaining_ms.map_or(LOOK, Duration::from_millis);
        tokio::time::sleep(left.clamp(Duration::from_millis(10), LOOK)).await;
    }
}

fn dead_holder(identity: &Identity, problem: &Problem) -> Option<String> {
    let holder = problem.holder.as_deref()?;
    identity.knows_dead(&Identity::parse(holder)?).then(|| holder.to_owned())
}

/// Says it, unless that is what was said last.
fn say(said: &mut Option<String>, what: &str) {
    if said.as_deref() != Some(what) {
        tell(&format!("tenure: {what}\n"));
        *said = Some(what.to_owned());
    }
}
