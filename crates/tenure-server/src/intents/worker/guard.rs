//! `POST /api/v3/worker/guard`: be the one worker.

use std::sync::Arc;

use axum::extract::State;
use tenure_api::{Guarded, TakeGuard};
use tenure_core::kernel::{
    self, Acquire, Command, Contention, Mode, Principal, Span, Want, guard as guard_resource, orchestrator,
};

use super::id::WorkerId;
use super::{Answer, FromWorker, WorkerRequest, answer};
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::fields::Fields;
use crate::http::leases::nonce;
use crate::http::refusal::{answered, unexpected};

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
    let until = app.registrar.read(|state| state.lease(fence).map(|lease| lease.expires_at));
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
