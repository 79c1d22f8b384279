//! The worker: it alone takes sessions with their leases, and carries them out.
//!
//! ```text
//! guard ──> ends what a worker before it left behind ──> wipes those sessions ──> works
//!                                                         crew.rs: pipelines and requests, around plan.rs
//! ```
//!
//! It runs in the process of the server, or in one of its own; `asked.rs` is all that makes a difference. What it starts
//! runs under a watchdog each (`watched`), so that nothing outlives its lease, whatever becomes of the worker.

mod asked;
mod cleaning;
mod crew;
mod guard;
mod identity;
mod in_server;
mod insist;
mod leftovers;
mod logs;
mod pipeline;
mod plan;
mod process;
mod recorded;
mod requests;
mod settings;
mod steps;
mod template;
#[cfg(test)]
mod testing;
mod unwatched;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use tenure_api::{AskChanges, Changes, Problem};

pub use self::asked::Asked;
use self::asked::Trouble;
use self::crew::Crew;
use self::identity::Identity;
pub use self::in_server::InServer;
pub use self::insist::Stop;
use self::insist::{insist, told};
pub use self::settings::Settings;
pub use self::template::{InvalidTemplate, Template};

/// Why a worker has ended, though nobody told it to.
#[derive(Debug)]
pub enum Over {
    /// Another one may have the guard.
    GuardLost(String),
    /// The server does not let it be the worker.
    Refused(Box<Problem>),
    /// The system does not give what it needs.
    System(io::Error),
}

impl From<Trouble> for Over {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::GuardLost(why) | Trouble::Passing(why) => Self::GuardLost(why),
            Trouble::Held(problem) | Trouble::Refused(problem) => Self::Refused(problem),
        }
    }
}

/// Works until it is told to stop: waits for the guard, cleans up, says that it is ready, and carries out sessions.
/// When it returns, no pipeline is left.
pub async fn work(
    asked: Asked,
    settings: Arc<Settings>,
    stop: Stop,
    ready: impl FnOnce(),
) -> Result<(), Over> {
    let identity = Identity::own().map_err(Over::System)?;
    let begin = async {
        let mut guard = guard::take(&asked, &identity, settings.ttl_ms).await?;
        let first = all_that_go_on(&asked, guard.fence).await?;
        cleaning::clean_up(&asked, &identity, &settings, &mut guard, &first.sessions).await?;
        Ok::<_, Over>((guard, first))
    };
    let (guard, first) = tokio::select! {
        begun = begin => begun?,
        () = told(&stop) => return Ok(()),
    };
    ready();
    Crew::new(asked, settings, guard).work(first, &stop).await
}

/// Every session that goes on, in however many parts the server tells them.
async fn all_that_go_on(asked: &Asked, guard: u64) -> Result<Changes, Over> {
    let (mut since, mut found) = (0, BTreeMap::new());
    loop {
        let request = AskChanges { guard, since, wait_ms: None };
        let part = insist!("listening to sessions", asked.changes(&request).await)?;
        // One that changed meanwhile is told again, as it is then.
        found.extend(part.sessions.into_iter().map(|session| (session.session_id.clone(), session)));
        since = part.revision;
        if !part.more {
            break;
        }
    }
    let mut sessions: Vec<_> = found.into_values().filter(|session| session.state != "ENDED").collect();
    sessions.sort_unstable_by_key(|session| session.revision);
    Ok(Changes { revision: since, sessions, more: false })
}
