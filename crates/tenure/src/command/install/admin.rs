//! Whether a person asks, or a process of an agent.

use tenure_api::FileSessionView;
use tenure_client::Error;
use tenure_core::kernel::ProcessId;
use tenure_gate::process::ancestors;

use crate::client::with_local_client;
use crate::exit;
use crate::failure::Failure;

/// Refuses whatever was started by an agent that the server knows: one that was denied a file would open the gate by itself.
///
/// Where no server runs, nobody is known, and nobody is denied anything either.
pub fn require_human() -> Result<(), Failure> {
    let sessions = with_local_client(async |client| match client.files().await {
        Ok(files) => Ok(files.sessions),
        Err(Error::Unreachable { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    })?;
    if is_below(&ancestors(std::process::id()), &sessions) {
        let what = "this was asked by a process of a coding agent; only a person may change Tenure's hooks: run the command in \
                    a terminal of your own";
        return Err(Failure::from_message(exit::DENIED, what));
    }
    Ok(())
}

/// Sessions say the number of their process alone. It is alive, and so are all above us: nobody else can have it.
fn is_below(above: &[ProcessId], sessions: &[FileSessionView]) -> bool {
    let mut alive = sessions.iter().map(|session| &session.owner).filter(|owner| owner.alive);
    alive.any(|owner| above.iter().any(|process| process.pid == owner.pid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::files::view::tests::sample_owner;

    #[test]
    fn descendant_of_a_live_agent_session_is_not_human() {
        let above = ancestors(std::process::id());
        let parent = above.first().unwrap().pid;
        let session = |pid, alive| FileSessionView {
            owner: tenure_api::FileOwner { pid, alive, ..sample_owner() },
            parent: None,
            known_ms: 0,
            idle_ms: 0,
            files: 0,
        };
        assert!(is_below(&above, &[session(parent, true)]));
        assert!(!is_below(&above, &[session(parent, false)]), "a dead one started nobody who is here");
        assert!(!is_below(&above, &[session(std::process::id(), true)]), "itself is not above itself");
    }
}
