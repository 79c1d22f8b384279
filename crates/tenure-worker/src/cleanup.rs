//! What a worker does before it begins: ends what one before it has left behind, and only then frees what that held.

use std::collections::BTreeSet;
use std::time::Duration;

use tenure_api::{
    IntentSessionFinishRequest, IntentSessionRenewalRequest, IntentSessionView, IntentSessionWipeRequest,
};
use tenure_client::local_deadline;
use tenure_core::kernel::TickDuration;
use tenure_host::stderr::print_stderr;

use super::leader::{LeaderLock, WorkerIdentity};
use super::orphan_processes::ProcessSnapshot;
use super::requests::ServerHandle;
use super::retry::retry;
use super::settings::Settings;
use super::{WorkerExit, orphan_processes};
use crate::process_supervisor::now;

/// How many sessions are wiped with one request.
const MAX_WIPED_PER_REQUEST: usize = 1_024;

/// Cleans up after workers that were on this machine. The guard is ours, and stays so meanwhile.
pub async fn clean_up(
    server: &ServerHandle,
    identity: &WorkerIdentity,
    settings: &Settings,
    guard: &mut LeaderLock,
    sessions: &[IntentSessionView],
) -> Result<(), WorkerExit> {
    let abandoned: Vec<IntentSessionView> =
        sessions.iter().filter(|session| is_abandoned(identity, session)).cloned().collect();
    let unwatched = orphan_processes::unsupervised_sessions(
        identity,
        &guard.lease,
        &ProcessSnapshot::all().map_err(WorkerExit::System)?,
    );
    if abandoned.is_empty() && unwatched.is_empty() {
        return Ok(());
    }
    let names =
        abandoned.iter().map(|session| &session.session_id).chain(&unwatched).collect::<BTreeSet<_>>();
    print_stderr(&format!("tenure: a worker before this one left {}; they are ended\n", count(names.len())));
    let ended = tokio::select! {
        ended = orphan_processes::terminate(&abandoned, &unwatched) => ended.map_err(WorkerExit::System)?,
        worker_exit = keep_leadership(server, settings, guard) => return Err(worker_exit),
    };
    for (session, processes) in &ended.stuck {
        print_stderr(&format!(
            "tenure: the processes {processes:?} of session {session} do not end. What it holds stays held until its \
             lease is over. Look at them, and end them.\n"
        ));
    }
    renew_leadership(server, settings, guard).await?;
    let own = identity.to_string();
    for session in abandoned.iter().filter(|session| session.worker.as_deref() == Some(&own)) {
        // Ours, from before we started over. If the guard was another one then, it is wiped below.
        if ended.gone.contains(&session.session_id) {
            let detail = Some("its worker started over".to_owned());
            let (reason, session_id) = ("R_WORKER_STOPPED".to_owned(), session.session_id.clone());
            let _ = server
                .finish_session(&IntentSessionFinishRequest {
                    guard: guard.fence,
                    session_id,
                    reason,
                    detail,
                })
                .await;
        }
    }
    for part in ended.gone.chunks(MAX_WIPED_PER_REQUEST) {
        let request = IntentSessionWipeRequest { guard: guard.fence, sessions: part.to_vec() };
        retry!("cleaning up", server.wipe_sessions(&request).await)?;
    }
    Ok(())
}

/// Whether a worker had it that was on this machine. Those of another machine run out by themselves.
fn is_abandoned(identity: &WorkerIdentity, session: &IntentSessionView) -> bool {
    let worker = session.worker.as_deref().and_then(WorkerIdentity::parse);
    let is_taken = ["STARTING", "RUNNING", "STOPPING"].contains(&session.state.as_str());
    is_taken && worker.is_some_and(|worker| worker.is_on_same_machine(identity))
}

/// Renews the guard until that fails for good.
async fn keep_leadership(server: &ServerHandle, settings: &Settings, guard: &mut LeaderLock) -> WorkerExit {
    loop {
        tokio::time::sleep(Duration::from_millis(settings.renew_every_ms)).await;
        if let Err(worker_exit) = renew_leadership(server, settings, guard).await {
            return worker_exit;
        }
    }
}

async fn renew_leadership(
    server: &ServerHandle,
    settings: &Settings,
    guard: &mut LeaderLock,
) -> Result<(), WorkerExit> {
    let request =
        IntentSessionRenewalRequest { guard: guard.fence, ttl_ms: settings.ttl_ms, sessions: Vec::new() };
    let mut sent;
    let kept = retry!("renewing the guard", {
        sent = now();
        if sent >= guard.valid_until {
            return Err(WorkerExit::LeadershipLost("it was not renewed in time".to_owned()));
        }
        server.renew_leases(&request).await
    })?;
    guard.valid_until =
        guard.valid_until.max(local_deadline(sent, TickDuration::from_millis(kept.remaining_ms)));
    Ok(())
}

fn count(sessions: usize) -> String {
    if sessions == 1 { "one session".to_owned() } else { format!("{sessions} sessions") }
}

#[cfg(test)]
mod tests {
    use super::super::testing::sample_session;
    use super::*;

    // O-12
    #[test]
    fn only_sessions_of_workers_on_this_machine_are_cleaned_up() {
        let own = WorkerIdentity::current().unwrap();
        let (name, foreign) = (own.to_string(), "worker:another-boot:1:2:3".to_owned());
        let of = |state, worker: &str| {
            let mut session = sample_session("s", state);
            session.worker = Some(worker.to_owned());
            is_abandoned(&own, &session)
        };
        assert!(["STARTING", "RUNNING", "STOPPING"].into_iter().all(|state| of(state, &name)));
        assert!(!of("NEW", &name) && !of("ENDED", &name));
        assert!(!of("RUNNING", &foreign) && !of("RUNNING", "ann"));
        assert!(!is_abandoned(&own, &sample_session("s", "RUNNING")));
    }
}
