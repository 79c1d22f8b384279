//! Whether a person asks, or a process of an agent.

use tenure_api::SessionOfAgent;
use tenure_client::Error;
use tenure_gate::process::{Process, ancestors};

use crate::exit;
use crate::failure::Failure;
use crate::server::ask_here;

/// Refuses whatever was started by an agent that the server knows: one that was denied a file would open the gate by itself.
///
/// Where no server runs, nobody is known, and nobody is denied anything either.
pub fn required() -> Result<(), Failure> {
    let sessions = ask_here(async |client| match client.files().await {
        Ok(files) => Ok(files.sessions),
        Err(Error::Unreachable { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    })?;
    if is_below(&ancestors(std::process::id()), &sessions) {
        let what = "this was asked by a process of a coding agent; only a person may change Tenure's hooks: run the command in \
                    a terminal of your own";
        return Err(Failure::said(exit::DENIED, what));
    }
    Ok(())
}

/// Sessions say the number of their process alone. It is alive, and so are all above us: nobody else can have it.
fn is_below(above: &[Process], sessions: &[SessionOfAgent]) -> bool {
    let mut alive = sessions.iter().map(|session| &session.owner).filter(|owner| owner.alive);
    alive.any(|owner| above.iter().any(|process| process.pid == owner.pid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::files::view::tests::someone;

    #[test]
    fn descendant_of_a_live_agent_session_is_not_human() {
        let above = ancestors(std::process::id());
        let parent = above.first().unwrap().pid;
        let session = |pid, alive| SessionOfAgent {
            owner: tenure_api::FileOwner { pid, alive, ..someone() },
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
