//! What a worker does before it begins: ends what one before it has left behind, and only then frees what that held.

use std::collections::BTreeSet;
use std::time::Duration;

use tenure_api::{FinishSession, KeepSessions, SessionView, WipeSessions};
use tenure_client::believed_until;
use tenure_core::kernel::Span;

use super::Over;
use super::asked::Asked;
use super::guard::Guard;
use super::identity::Identity;
use super::insist::insist;
use super::process::Process;
use super::settings::Settings;
use super::{leftovers, unwatched};
use crate::message::tell;
use crate::watched::clock::now;

/// How many sessions are wiped with one request.
const MOST_WIPED: usize = 1_024;

/// Cleans up after workers that were on this machine. The guard is ours, and stays so meanwhile.
pub async fn clean_up(
    asked: &Asked,
    identity: &Identity,
    settings: &Settings,
    guard: &mut Guard,
    sessions: &[SessionView],
) -> Result<(), Over> {
    let left: Vec<SessionView> =
        sessions.iter().filter(|session| is_left(identity, session)).cloned().collect();
    let unwatched = unwatched::sessions(identity, &guard.lease, &Process::all().map_err(Over::System)?);
    if left.is_empty() && unwatched.is_empty() {
        return Ok(());
    }
    let names = left.iter().map(|session| &session.session_id).chain(&unwatched).collect::<BTreeSet<_>>();
    tell(&format!("tenure: a worker before this one left {}; they are ended\n", count(names.len())));
    let ended = tokio::select! {
        ended = leftovers::end(&left, &unwatched) => ended.map_err(Over::System)?,
        over = keep_guard(asked, settings, guard) => return Err(over),
    };
    for (session, processes) in &ended.stuck {
        tell(&format!(
            "tenure: the processes {processes:?} of session {session} do not end. What it holds stays held until its \
             lease is over. Look at them, and end them.\n"
        ));
    }
    renew_guard(asked, settings, guard).await?;
    let own = identity.to_string();
    for session in left.iter().filter(|session| session.worker.as_deref() == Some(&own)) {
        // Ours, from before we started over. If the guard was another one then, it is wiped below.
        if ended.gone.contains(&session.session_id) {
            let detail = Some("its worker started over".to_owned());
            let (reason, session_id) = ("R_WORKER_STOPPED".to_owned(), session.session_id.clone());
            let _ = asked.finish(&FinishSession { guard: guard.fence, session_id, reason, detail }).await;
        }
    }
    for part in ended.gone.chunks(MOST_WIPED) {
        let request = WipeSessions { guard: guard.fence, sessions: part.to_vec() };
        insist!("cleaning up", asked.wipe(&request).await)?;
    }
    Ok(())
}

/// Whether a worker had it that was on this machine. Those of another machine run out by themselves.
fn is_left(identity: &Identity, session: &SessionView) -> bool {
    let worker = session.worker.as_deref().and_then(Identity::parse);
    let is_taken = ["STARTING", "RUNNING", "STOPPING"].contains(&session.state.as_str());
    is_taken && worker.is_some_and(|worker| worker.is_beside(identity))
}

/// Renews the guard until that fails for good.
async fn keep_guard(asked: &Asked, settings: &Settings, guard: &mut Guard) -> Over {
    loop {
        tokio::time::sleep(Duration::from_millis(settings.renew_every_ms)).await;
        if let Err(over) = renew_guard(asked, settings, guard).await {
            return over;
        }
    }
}

async fn renew_guard(asked: &Asked, settings: &Settings, guard: &mut Guard) -> Result<(), Over> {
    let request = KeepSessions { guard: guard.fence, ttl_ms: settings.ttl_ms, sessions: Vec::new() };
    let mut sent;
    let kept = insist!("renewing the guard", {
        sent = now();
        if sent >= guard.until {
            return Err(Over::GuardLost("it was not renewed in time".to_owned()));
        }
        asked.keep(&request).await
    })?;
    guard.until = guard.until.max(believed_until(sent, Span::from_millis(kept.remaining_ms)));
    Ok(())
}

fn count(sessions: usize) -> String {
    if sessions == 1 { "one session".to_owned() } else { format!("{sessions} sessions") }
}

#[cfg(test)]
mod tests {
    use super::super::testing::session;
    use super::*;

    // O-12
    #[test]
    fn only_sessions_of_workers_on_this_machine_are_cleaned_up() {
        let own = Identity::own().unwrap();
        let (name, foreign) = (own.to_string(), "worker:another-boot:1:2:3".to_owned());
        let of = |state, worker: &str| {
            let mut session = session("s", state);
            session.worker = Some(worker.to_owned());
            is_left(&own, &session)
        };
        assert!(["STARTING", "RUNNING", "STOPPING"].into_iter().all(|state| of(state, &name)));
        assert!(!of("NEW", &name) && !of("ENDED", &name));
        assert!(!of("RUNNING", &foreign) && !of("RUNNING", "ann"));
        assert!(!is_left(&own, &session("s", "RUNNING")));
    }
}
