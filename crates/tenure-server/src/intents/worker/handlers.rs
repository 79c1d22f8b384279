//! Requests of a worker, each decided in one step.

use std::sync::Arc;

use axum::extract::State;
use tenure_api::{
    FinishSession, Guarded, KeepSessions, KeptSession, KeptSessions, LeaveGuard, SessionNow, SessionRuns,
    TakeGuard, TakeSession, Taken, WipeSessions, WipedSessions,
};
use tenure_core::kernel;
use tenure_core::kernel::{
    Acquire, Claim, Command, Contention, Fence, GUARD, IntentAnswer, IntentCommand, Kept, Mode, Principal,
    Refusal, SessionEnd, SessionState, Span, Take, Want, guard as guard_resource, orchestrator,
};
use tenure_core::lease::ReleaseReason;
use tenure_registrar::Reply;

use super::id::WorkerId;
use super::{
    Answer, FromWorker, WorkerRequest, answer, ask, read_sessions, remaining_ms, session_named,
    sessions_named,
};
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::fields::Fields;
use crate::http::leases::nonce;
use crate::http::refusal::{answered, failure_of, guard_lost, unexpected};
use crate::intents::view::now_at;

/// Be the one worker, or stay it.
///
/// A worker that is proven dead, by another of the same boot and namespace of processes, loses the guard at once.
#[utoipa::path(
    post,
    path = "/api/v3/worker/guard",
    tag = "worker",
    operation_id = "workerGuard",
    request_body = TakeGuard,
    responses((status = 200, description = "The guard is the asker's", body = Guarded)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "HELD", "HOLDER_TAKEN", "QUOTA_EXCEEDED"])))
)]
pub(super) async fn ask_guard(State(app): State<Arc<App>>, from: FromWorker<TakeGuard>) -> Answer {
    answer(guard(&app, &from.caller.principal, &from.request).await)
}

impl WorkerRequest for TakeGuard {
    fn read(fields: &mut Fields) -> Result<Self, Failure> {
        Ok(Self {
            worker: fields.text("worker")?,
            ttl_ms: fields.number("ttlMs")?,
            dead: fields.optional_text("dead")?,
        })
    }
}

/// Takes the guard, or renews it.
pub(in crate::intents) async fn guard(
    app: &App,
    by: &Principal,
    request: &TakeGuard,
) -> Result<Guarded, Failure> {
    let worker = WorkerId::parse("worker", &request.worker)?;
    if let Some(dead) = &request.dead {
        bury(app, by, &worker, &WorkerId::parse("dead", dead)?).await?;
    }
    let want = Want {
        resource: guard_resource(),
        others: Default::default(),
        mode: Mode::Exclusive,
        ttl: Span::from_millis(request.ttl_ms),
        nonce: nonce()?,
        labels: Default::default(),
    };
    let acquire = Acquire {
        principal: orchestrator(),
        holder: worker.holder,
        wants: vec![want],
        contention: Contention::RefreshOwn,
        key: None,
    };
    let response = app.registrar.ask(Command::Acquire(acquire)).await;
    let (answer, _) = answered(response.reply, || app.registrar.now())?;
    let kernel::Answer::Granted { leases } = answer else { return Err(unexpected()) };
    let fence = *leases.first().ok_or_else(unexpected)?;
    let until = app.registrar.read(|state| state.lease(fence).map(|lease| lease.terms.expires_at));
    // Gone already is a guard with no time left.
    let remaining_ms = until.map_or(0, |until| super::remaining_ms(app, until));
    let lease_id = app.registrar.read(|state| state.tag().lease_id(fence));
    Ok(Guarded { guard: fence.0, lease_id, remaining_ms })
}

/// Ends what a dead worker holds, if it is the one that holds the guard, and if who says so can know.
async fn bury(app: &App, by: &Principal, worker: &WorkerId, dead: &WorkerId) -> Result<(), Failure> {
    let has_guard = app
        .registrar
        .read(|state| state.leases_on_resource(&guard_resource()).any(|lease| *lease.holder == dead.holder));
    if !has_guard || !worker.sees(dead) || worker == dead {
        return Ok(());
    }
    let detail = format!("{} saw that its process is gone", worker.holder);
    let command = Command::Reclaim { holder: dead.holder.clone(), by: by.clone(), detail: detail.into() };
    let response = app.registrar.ask(command).await;
    answered(response.reply, || app.registrar.now()).map(drop)
}

/// The most tuners: as many as the kernel looks at for one lease.
const MOST_TUNERS: u32 = 64;

/// Take a session with its leases.
///
/// If they cannot be had, the session is over, and the answer says why.
#[utoipa::path(
    post,
    path = "/api/v3/worker/take",
    tag = "worker",
    operation_id = "workerTake",
    request_body = TakeSession,
    responses((status = 200, description = "Where the session is, and what it holds", body = SessionNow)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "NOT_FOUND", "GUARD_LOST", "QUOTA_EXCEEDED", "HOLDER_TAKEN"])))
)]
pub(super) async fn ask_take(State(app): State<Arc<App>>, from: FromWorker<TakeSession>) -> Answer {
    answer(take(&app, &from.request).await)
}

impl WorkerRequest for TakeSession {
    fn read(fields: &mut Fields) -> Result<Self, Failure> {
        Ok(Self {
            guard: fields.number("guard")?,
            session_id: fields.text("session_id")?,
            tuners: tuners(fields.number("tuners")?)?,
            ttl_ms: fields.number("ttlMs")?,
        })
    }
}

fn tuners(number: u64) -> Result<u32, Failure> {
    let wrong = || Failure::invalid("tuners", &format!("must be from 0 to {MOST_TUNERS}"));
    u32::try_from(number).ok().filter(|number| *number <= MOST_TUNERS).ok_or_else(wrong)
}

/// Takes a session.
pub(in crate::intents) async fn take(app: &App, request: &TakeSession) -> Result<SessionNow, Failure> {
    let take = Take {
        session: session_named(&request.session_id)?,
        guard: Fence(request.guard),
        slots: tuners(request.tuners.into())?,
        ttl: Span::from_millis(request.ttl_ms),
        nonces: [nonce()?, nonce()?],
    };
    match ask(app, IntentCommand::Take(take)).await? {
        IntentAnswer::Taken { leases, slot, until } => {
            let tag = app.registrar.read(tenure_core::kernel::State::tag);
            let taken = Taken {
                slot,
                leases: leases.iter().map(|fence| tag.lease_id(*fence)).collect(),
                fences: leases.iter().map(|fence| fence.0).collect(),
                remaining_ms: remaining_ms(app, until),
            };
            let state = SessionState::Starting.as_str().to_owned();
            Ok(SessionNow { state, reason: None, outcome: None, taken: Some(taken) })
        }
        answer => now_at(&answer),
    }
}

/// Say that a session's pipeline runs.
///
/// If somebody asked for its end meanwhile, or it lost a lease, it does not run: the answer says where it is.
#[utoipa::path(
    post,
    path = "/api/v3/worker/running",
    tag = "worker",
    operation_id = "workerRunning",
    request_body = SessionRuns,
    responses((status = 200, description = "Where the session is", body = SessionNow)),
    extensions(("x-codes" = json!(["NOT_FOUND", "GUARD_LOST"])))
)]
pub(super) async fn ask_running(State(app): State<Arc<App>>, from: FromWorker<SessionRuns>) -> Answer {
    answer(running(&app, &from.request).await)
}

impl WorkerRequest for SessionRuns {
    fn read(fields: &mut Fields) -> Result<Self, Failure> {
        Ok(Self {
            guard: fields.number("guard")?,
            session_id: fields.text("session_id")?,
            process: fields.text("process")?,
        })
    }
}

/// Notes that it runs.
pub(in crate::intents) async fn running(app: &App, request: &SessionRuns) -> Result<SessionNow, Failure> {
    let session = session_named(&request.session_id)?;
    let (guard, process) = (Fence(request.guard), request.process.as_str().into());
    now_at(&ask(app, IntentCommand::Run { session, guard, process }).await?)
}

/// Renew the guard, and the leases of these sessions.
///
/// A lease that is lost is never given back: its session is over.
#[utoipa::path(
    post,
    path = "/api/v3/worker/keep",
    tag = "worker",
    operation_id = "workerKeep",
    request_body = KeepSessions,
    responses((status = 200, description = "What became of them", body = KeptSessions)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "GUARD_LOST"])))
)]
pub(super) async fn ask_keep(State(app): State<Arc<App>>, from: FromWorker<KeepSessions>) -> Answer {
    answer(keep(&app, &from.request).await)
}

impl WorkerRequest for KeepSessions {
    fn read(fields: &mut Fields) -> Result<Self, Failure> {
        Ok(Self {
            guard: fields.number("guard")?,
            ttl_ms: fields.number("ttlMs")?,
            sessions: read_sessions(fields)?,
        })
    }
}

/// Renews.
pub(in crate::intents) async fn keep(app: &App, request: &KeepSessions) -> Result<KeptSessions, Failure> {
    let (guard, ttl) = (Fence(request.guard), Span::from_millis(request.ttl_ms));
    let sessions = sessions_named(&request.sessions)?;
    let answer = ask(app, IntentCommand::Keep { guard, ttl, sessions }).await?;
    let IntentAnswer::Kept { until, sessions } = answer else { return Err(unexpected()) };
    let kept = request.sessions.iter().zip(sessions).map(|(id, kept)| {
        let (held, remaining_ms, state) = match kept {
            Kept::Until { until, state } => (true, remaining_ms(app, until), Some(state.as_str().to_owned())),
            Kept::Lost => (false, 0, None),
        };
        KeptSession { session_id: id.clone(), held, remaining_ms, state }
    });
    let sessions = kept.collect();
    Ok(KeptSessions { remaining_ms: remaining_ms(app, until), sessions })
}

/// Say that a session's pipeline is gone.
///
/// The session is over, and what it holds is free.
#[utoipa::path(
    post,
    path = "/api/v3/worker/finish",
    tag = "worker",
    operation_id = "workerFinish",
    request_body = FinishSession,
    responses((status = 200, description = "Where the session is", body = SessionNow)),
    extensions(("x-codes" = json!(["NOT_FOUND", "GUARD_LOST"])))
)]
pub(super) async fn ask_finish(State(app): State<Arc<App>>, from: FromWorker<FinishSession>) -> Answer {
    answer(finish(&app, &from.request).await)
}

/// The ends that a worker sees.
const ENDS: [SessionEnd; 5] = [
    SessionEnd::Completed,
    SessionEnd::Failed,
    SessionEnd::Stopped,
    SessionEnd::LeaseLost,
    SessionEnd::WorkerStopped,
];

impl WorkerRequest for FinishSession {
    fn read(fields: &mut Fields) -> Result<Self, Failure> {
        Ok(Self {
            guard: fields.number("guard")?,
            session_id: fields.text("session_id")?,
            reason: fields.text("reason")?,
            detail: fields.optional_text("detail")?,
        })
    }
}

/// Ends a session.
pub(in crate::intents) async fn finish(app: &App, request: &FinishSession) -> Result<SessionNow, Failure> {
    let end = ENDS.into_iter().find(|end| end.reason() == request.reason);
    let end = end.ok_or_else(|| {
        let reasons = ENDS.map(SessionEnd::reason).join(", ");
        Failure::invalid("reason", &format!("must be one of {reasons}"))
    })?;
    let (session, guard) = (session_named(&request.session_id)?, Fence(request.guard));
    let detail = request.detail.as_deref().unwrap_or_default().into();
    now_at(&ask(app, IntentCommand::Finish { session, guard, end, detail }).await?)
}

/// Give the guard back.
///
/// Giving back what is over already is a success.
#[utoipa::path(
    post,
    path = "/api/v3/worker/leave",
    tag = "worker",
    operation_id = "workerLeave",
    request_body = LeaveGuard,
    responses((status = 200, description = "It is free", body = Object)),
    extensions(("x-codes" = json!(["GUARD_LOST"])))
)]
pub(super) async fn ask_leave(State(app): State<Arc<App>>, from: FromWorker<LeaveGuard>) -> Answer {
    answer(leave(&app, &from.request).await)
}

impl WorkerRequest for LeaveGuard {
    fn read(fields: &mut Fields) -> Result<Self, Failure> {
        Ok(Self { guard: fields.number("guard")? })
    }
}

/// Gives the guard back.
pub(in crate::intents) async fn leave(app: &App, request: &LeaveGuard) -> Result<serde_json::Value, Failure> {
    let lease = Fence(request.guard);
    let done = || Ok(serde_json::json!({}));
    let found = app.registrar.read(|state| {
        let live = state.lease(lease).filter(|lease| lease.resource.as_str() == GUARD);
        let is_over = || state.ended(lease).is_some_and(|lease| lease.resource.as_str() == GUARD);
        live.map(|lease| Some(lease.holder.clone())).or_else(|| is_over().then_some(None))
    });
    let Some(holder) = found.ok_or_else(guard_lost)? else { return done() };
    let claim = Claim::Holder { holder, principal: orchestrator() };
    let reason = ReleaseReason::Voluntary;
    let response = app.registrar.ask(Command::Release { lease, claim, reason }).await;
    match response.reply {
        Reply::Answered {
            answer: kernel::Answer::Released { .. } | kernel::Answer::Refused(Refusal::Over { .. }),
            ..
        } => done(),
        reply => Err(failure_of(reply, || app.registrar.now())),
    }
}

/// Say that the processes of these sessions are gone, and so is their worker.
///
/// They are over, and what they hold is free. Sessions of the asker's own guard stay.
#[utoipa::path(
    post,
    path = "/api/v3/worker/wipe",
    tag = "worker",
    operation_id = "workerWipe",
    request_body = WipeSessions,
    responses((status = 200, description = "How many were over by it", body = WipedSessions)),
    extensions(("x-codes" = json!(["GUARD_LOST"])))
)]
pub(super) async fn ask_wipe(State(app): State<Arc<App>>, from: FromWorker<WipeSessions>) -> Answer {
    answer(wipe(&app, &from.request).await)
}

impl WorkerRequest for WipeSessions {
    fn read(fields: &mut Fields) -> Result<Self, Failure> {
        Ok(Self { guard: fields.number("guard")?, sessions: read_sessions(fields)? })
    }
}

/// Ends them.
pub(in crate::intents) async fn wipe(app: &App, request: &WipeSessions) -> Result<WipedSessions, Failure> {
    let (guard, sessions) = (Fence(request.guard), sessions_named(&request.sessions)?);
    let answer = ask(app, IntentCommand::Wipe { guard, sessions }).await?;
    let IntentAnswer::Wiped { sessions } = answer else { return Err(unexpected()) };
    Ok(WipedSessions { wiped: sessions })
}
