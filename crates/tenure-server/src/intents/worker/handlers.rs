//! Requests of a worker, each decided in one step.

use std::sync::Arc;

use axum::extract::State;
use tenure_api::{
    IntentSessionFinishRequest, IntentSessionLeases, IntentSessionRenewal, IntentSessionRenewalRequest,
    IntentSessionRenewals, IntentSessionRunningReport, IntentSessionStatus, IntentSessionTakeRequest,
    IntentSessionWipeRequest, LeaderLockGrant, LeaderLockReleaseRequest, LeaderLockRequest, WipeResult,
};
use tenure_core::kernel;
use tenure_core::kernel::{
    Acquire, Command, ContentionPolicy, Fence, IntentCommand, IntentOutcome, IntentSessionEnd,
    IntentSessionState, KeepAliveOutcome, LEADER_LOCK, LeaseCredential, LeaseMode, LeaseRequest, Principal,
    Rejection, TakeIntentSession, TickDuration, leader_lock_resource as guard_resource,
    orchestrator_principal,
};
use tenure_core::lease::ReleaseReason;
use tenure_registrar::Reply;

use super::{
    Answer, AuthenticatedWorkerRequest, WorkerId, answer, remaining_ms, session_named, sessions_named, submit,
};
use crate::app::App;
use crate::http::response::{HttpError, answer_from_reply, error_from_reply, leader_lock_lost, unexpected};
use crate::intents::view::session_status;
use crate::leases::nonce;

/// Acquire or renew the leader lock.
///
/// A holder that is reported dead by a worker of the same boot and PID namespace loses the lock at once.
#[utoipa::path(
    post,
    path = "/api/v3/worker/guard",
    tag = "worker",
    operation_id = "workerGuard",
    request_body = LeaderLockRequest,
    responses((status = 200, description = "Lock is held by the caller", body = LeaderLockGrant)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "HELD", "HOLDER_TAKEN", "QUOTA_EXCEEDED"])))
)]
pub(super) async fn post_leader_lock(
    State(app): State<Arc<App>>,
    from: AuthenticatedWorkerRequest<LeaderLockRequest>,
) -> Answer {
    answer(acquire_leader_lock(&app, &from.caller.principal, &from.request).await)
}

/// Takes the guard, or renews it.
pub(in crate::intents) async fn acquire_leader_lock(
    app: &App,
    by: &Principal,
    request: &LeaderLockRequest,
) -> Result<LeaderLockGrant, HttpError> {
    let worker = WorkerId::parse("worker", &request.worker)?;
    if let Some(dead) = &request.dead {
        reclaim_dead_worker(app, by, &worker, &WorkerId::parse("dead", dead)?).await?;
    }
    let request = LeaseRequest {
        resource: guard_resource(),
        alternatives: Default::default(),
        mode: LeaseMode::Exclusive,
        ttl: TickDuration::from_millis(request.ttl_ms),
        nonce: nonce()?,
        labels: Default::default(),
    };
    let acquire = Acquire {
        principal: orchestrator_principal(),
        holder: worker.holder,
        requests: vec![request],
        contention_policy: ContentionPolicy::RefreshOwn,
        key: None,
    };
    let response = app.registrar.submit(Command::Acquire(acquire)).await;
    let (answer, _) = answer_from_reply(response.reply, || app.registrar.now())?;
    let kernel::CommandOutcome::Granted { leases } = answer else { return Err(unexpected()) };
    let fence = *leases.first().ok_or_else(unexpected)?;
    let until = app.registrar.read(|state| state.lease(fence).map(|lease| lease.terms.expires_at));
    // Gone already is a guard with no time left.
    let remaining_ms = until.map_or(0, |until| super::remaining_ms(app, until));
    let lease_id = app.registrar.read(|state| state.ledger_tag().lease_id(fence));
    Ok(LeaderLockGrant { guard: fence.0, lease_id, remaining_ms })
}

/// Ends what a dead worker holds, if it is the one that holds the guard, and if who says so can know.
async fn reclaim_dead_worker(
    app: &App,
    by: &Principal,
    worker: &WorkerId,
    dead: &WorkerId,
) -> Result<(), HttpError> {
    let has_guard = app
        .registrar
        .read(|state| state.leases_on_resource(&guard_resource()).any(|lease| *lease.holder == dead.holder));
    if !has_guard || !worker.shares_namespace(dead) || worker == dead {
        return Ok(());
    }
    let detail = format!("{} saw that its process is gone", worker.holder);
    let command = Command::Reclaim { holder: dead.holder.clone(), by: by.clone(), detail: detail.into() };
    let response = app.registrar.submit(command).await;
    answer_from_reply(response.reply, || app.registrar.now()).map(drop)
}

/// The most tuners: as many as the kernel looks at for one lease.
const MAX_TUNERS: u32 = 64;

/// Take an intent session and acquire its leases.
///
/// If they are unavailable, the session ends, and the response has the reason.
#[utoipa::path(
    post,
    path = "/api/v3/worker/take",
    tag = "worker",
    operation_id = "workerTake",
    request_body = IntentSessionTakeRequest,
    responses((status = 200, description = "State and leases of the session", body = IntentSessionStatus)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "NOT_FOUND", "GUARD_LOST", "QUOTA_EXCEEDED", "HOLDER_TAKEN"])))
)]
pub(super) async fn post_take(
    State(app): State<Arc<App>>,
    from: AuthenticatedWorkerRequest<IntentSessionTakeRequest>,
) -> Answer {
    answer(take(&app, &from.request).await)
}

fn check_tuners(number: u32) -> Result<u32, HttpError> {
    let wrong = || HttpError::invalid("tuners", &format!("must be from 0 to {MAX_TUNERS}"));
    (number <= MAX_TUNERS).then_some(number).ok_or_else(wrong)
}

/// Takes a session.
pub(in crate::intents) async fn take(
    app: &App,
    request: &IntentSessionTakeRequest,
) -> Result<IntentSessionStatus, HttpError> {
    let take = TakeIntentSession {
        session: session_named(&request.session_id)?,
        leader: Fence(request.guard),
        slots: check_tuners(request.tuners)?,
        ttl: TickDuration::from_millis(request.ttl_ms),
        nonces: [nonce()?, nonce()?],
    };
    match submit(app, IntentCommand::Take(take)).await? {
        IntentOutcome::Taken { leases, slot, until } => {
            let tag = app.registrar.read(tenure_core::kernel::KernelState::ledger_tag);
            let taken = IntentSessionLeases {
                slot,
                leases: leases.iter().map(|fence| tag.lease_id(*fence)).collect(),
                fences: leases.iter().map(|fence| fence.0).collect(),
                remaining_ms: remaining_ms(app, until),
            };
            let state = IntentSessionState::Starting.as_str().to_owned();
            Ok(IntentSessionStatus { state, reason: None, outcome: None, taken: Some(taken) })
        }
        answer => session_status(&answer),
    }
}

/// Report that the pipeline of an intent session is running.
///
/// If the session was stopped or lost a lease meanwhile, it does not run; the response has its state.
#[utoipa::path(
    post,
    path = "/api/v3/worker/running",
    tag = "worker",
    operation_id = "workerRunning",
    request_body = IntentSessionRunningReport,
    responses((status = 200, description = "State of the session", body = IntentSessionStatus)),
    extensions(("x-codes" = json!(["NOT_FOUND", "GUARD_LOST"])))
)]
pub(super) async fn post_running(
    State(app): State<Arc<App>>,
    from: AuthenticatedWorkerRequest<IntentSessionRunningReport>,
) -> Answer {
    answer(report_running(&app, &from.request).await)
}

/// Notes that it runs.
pub(in crate::intents) async fn report_running(
    app: &App,
    request: &IntentSessionRunningReport,
) -> Result<IntentSessionStatus, HttpError> {
    let session = session_named(&request.session_id)?;
    let (guard, process) = (Fence(request.guard), request.process.as_str().into());
    session_status(&submit(app, IntentCommand::Run { session, leader: guard, process }).await?)
}

/// Renew the leader lock and the leases of intent sessions.
///
/// A lost lease is not restored: its session ends.
#[utoipa::path(
    post,
    path = "/api/v3/worker/keep",
    tag = "worker",
    operation_id = "workerKeep",
    request_body = IntentSessionRenewalRequest,
    responses((status = 200, description = "Lock and leases after renewal", body = IntentSessionRenewals)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "GUARD_LOST"])))
)]
pub(super) async fn post_renew_leases(
    State(app): State<Arc<App>>,
    from: AuthenticatedWorkerRequest<IntentSessionRenewalRequest>,
) -> Answer {
    answer(renew_leases(&app, &from.request).await)
}

/// Renews.
pub(in crate::intents) async fn renew_leases(
    app: &App,
    request: &IntentSessionRenewalRequest,
) -> Result<IntentSessionRenewals, HttpError> {
    let (guard, ttl) = (Fence(request.guard), TickDuration::from_millis(request.ttl_ms));
    let sessions = sessions_named(&request.sessions)?;
    let answer = submit(app, IntentCommand::KeepAlive { guard, ttl, sessions }).await?;
    let IntentOutcome::KeptAlive { until, sessions } = answer else { return Err(unexpected()) };
    let kept = request.sessions.iter().zip(sessions).map(|(id, kept)| {
        let (held, remaining_ms, state) = match kept {
            KeepAliveOutcome::Active { until, state } => {
                (true, remaining_ms(app, until), Some(state.as_str().to_owned()))
            }
            KeepAliveOutcome::Lost => (false, 0, None),
        };
        IntentSessionRenewal { session_id: id.clone(), held, remaining_ms, state }
    });
    let sessions = kept.collect();
    Ok(IntentSessionRenewals { remaining_ms: remaining_ms(app, until), sessions })
}

/// End an intent session whose pipeline is gone.
///
/// Releases the leases of the session.
#[utoipa::path(
    post,
    path = "/api/v3/worker/finish",
    tag = "worker",
    operation_id = "workerFinish",
    request_body = IntentSessionFinishRequest,
    responses((status = 200, description = "State of the session", body = IntentSessionStatus)),
    extensions(("x-codes" = json!(["NOT_FOUND", "GUARD_LOST"])))
)]
pub(super) async fn post_finish(
    State(app): State<Arc<App>>,
    from: AuthenticatedWorkerRequest<IntentSessionFinishRequest>,
) -> Answer {
    answer(finish(&app, &from.request).await)
}

/// The ends that a worker sees.
const ENDS: [IntentSessionEnd; 5] = [
    IntentSessionEnd::Completed,
    IntentSessionEnd::Failed,
    IntentSessionEnd::Stopped,
    IntentSessionEnd::LeaseLost,
    IntentSessionEnd::WorkerStopped,
];

/// Ends a session.
pub(in crate::intents) async fn finish(
    app: &App,
    request: &IntentSessionFinishRequest,
) -> Result<IntentSessionStatus, HttpError> {
    let end = ENDS.into_iter().find(|end| end.reason() == request.reason);
    let end = end.ok_or_else(|| {
        let reasons = ENDS.map(IntentSessionEnd::reason).join(", ");
        HttpError::invalid("reason", &format!("must be one of {reasons}"))
    })?;
    let (session, guard) = (session_named(&request.session_id)?, Fence(request.guard));
    let detail = request.detail.as_deref().unwrap_or_default().into();
    session_status(&submit(app, IntentCommand::Finish { session, guard, end, detail }).await?)
}

/// Release the leader lock.
///
/// Releasing an ended lock succeeds.
#[utoipa::path(
    post,
    path = "/api/v3/worker/leave",
    tag = "worker",
    operation_id = "workerLeave",
    request_body = LeaderLockReleaseRequest,
    responses((status = 200, description = "The lock is free", body = Object)),
    extensions(("x-codes" = json!(["GUARD_LOST"])))
)]
pub(super) async fn post_leader_lock_release(
    State(app): State<Arc<App>>,
    from: AuthenticatedWorkerRequest<LeaderLockReleaseRequest>,
) -> Answer {
    answer(release_leader_lock(&app, &from.request).await)
}

/// Gives the guard back.
pub(in crate::intents) async fn release_leader_lock(
    app: &App,
    request: &LeaderLockReleaseRequest,
) -> Result<serde_json::Value, HttpError> {
    let lease = Fence(request.guard);
    let done = || Ok(serde_json::json!({}));
    let found = app.registrar.read(|state| {
        let live = state.lease(lease).filter(|lease| lease.resource.as_str() == LEADER_LOCK);
        let has_ended =
            || state.ended_lease(lease).is_some_and(|lease| lease.resource.as_str() == LEADER_LOCK);
        live.map(|lease| Some(lease.holder.clone())).or_else(|| has_ended().then_some(None))
    });
    let Some(holder) = found.ok_or_else(leader_lock_lost)? else { return done() };
    let claim = LeaseCredential::Holder { holder, principal: orchestrator_principal() };
    let reason = ReleaseReason::Voluntary;
    let response = app.registrar.submit(Command::Release { lease, claim, reason }).await;
    match response.reply {
        Reply::Answered {
            answer:
                kernel::CommandOutcome::Released { .. }
                | kernel::CommandOutcome::Rejected(Rejection::Ended { .. }),
            ..
        } => done(),
        reply => Err(error_from_reply(reply, || app.registrar.now())),
    }
}

/// End intent sessions whose processes and worker are gone.
///
/// Releases their leases. Sessions of the caller's own leader lock are kept.
#[utoipa::path(
    post,
    path = "/api/v3/worker/wipe",
    tag = "worker",
    operation_id = "workerWipe",
    request_body = IntentSessionWipeRequest,
    responses((status = 200, description = "Number of ended sessions", body = WipeResult)),
    extensions(("x-codes" = json!(["GUARD_LOST"])))
)]
pub(super) async fn post_wipe(
    State(app): State<Arc<App>>,
    from: AuthenticatedWorkerRequest<IntentSessionWipeRequest>,
) -> Answer {
    answer(wipe(&app, &from.request).await)
}

/// Ends them.
pub(in crate::intents) async fn wipe(
    app: &App,
    request: &IntentSessionWipeRequest,
) -> Result<WipeResult, HttpError> {
    let (guard, sessions) = (Fence(request.guard), sessions_named(&request.sessions)?);
    let answer = submit(app, IntentCommand::Wipe { guard, sessions }).await?;
    let IntentOutcome::Wiped { sessions } = answer else { return Err(unexpected()) };
    Ok(WipeResult { wiped: sessions })
}
