//! Waiting for what becomes of a session.

use tenure_api::SessionView;
use tenure_client::Client;

use crate::exit;
use crate::failure::Failure;

/// How long one question waits for a change. The next one goes on where it ended.
const AT_ONCE_MS: u64 = 30_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// It runs, or it is over.
    Decided,
    Over,
}

impl Goal {
    fn is_reached(self, session: &SessionView) -> bool {
        session.state == "ENDED" || self == Goal::Decided && session.state == "RUNNING"
    }
}

/// Waits until the session has come so far. It is told each change, and does not look again and again.
pub async fn until(client: &Client, id: &str, goal: Goal) -> Result<SessionView, Failure> {
    let mut session = client.session(id).await?;
    while !goal.is_reached(&session) {
        session = client.session_after(id, session.revision, AT_ONCE_MS).await?;
    }
    Ok(session)
}

/// Whether what was wanted is shown: the exit code says it, and what was printed says why.
pub fn verdict(session: &SessionView) -> Result<(), Failure> {
    let is_good = session.state != "ENDED" || session.outcome.as_deref() == Some("COMPLETED");
    if is_good { Ok(()) } else { Err(Failure::silent(exit::NO)) }
}
