//! Waiting for what becomes of a session.

use tenure_api::IntentSessionView;
use tenure_client::Client;

use crate::exit;
use crate::failure::Failure;

/// How long one question waits for a change. The next one goes on where it ended.
const LONG_POLL_MS: u64 = 30_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionGoal {
    /// It runs, or it is over.
    Decided,
    Ended,
}

impl SessionGoal {
    fn is_reached(self, session: &IntentSessionView) -> bool {
        session.state == "ENDED" || self == SessionGoal::Decided && session.state == "RUNNING"
    }
}

/// Waits until the session has come so far. It is told each change, and does not look again and again.
pub async fn wait_until(client: &Client, id: &str, goal: SessionGoal) -> Result<IntentSessionView, Failure> {
    let mut session = client.intent_session(id).await?;
    while !goal.is_reached(&session) {
        session = client.intent_session_after(id, session.revision, LONG_POLL_MS).await?;
    }
    Ok(session)
}

/// Whether what was wanted is shown: the exit code says it, and what was printed says why.
pub fn fail_unless_completed(session: &IntentSessionView) -> Result<(), Failure> {
    let is_good = session.state != "ENDED" || session.outcome.as_deref() == Some("COMPLETED");
    if is_good { Ok(()) } else { Err(Failure::silent(exit::NO)) }
}
