//! Releases and revokes leases.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{LeaseRenewal, LeaseResponse, Recall, ReleaseRequest, RenewalRequest, RevocationRequest};
use tenure_core::kernel;
use tenure_core::kernel::{
    Command, CommandOutcome, LeaseCredential, LeaseMode, LeaseTerms, LeaseView, Rejection, Resource,
    RevocationCause, Tick, TickDuration,
};
use tenure_core::lease::ReleaseReason;
use tenure_core::rules::{check_name, is_expired, remaining};
use tenure_registrar::Reply;

use super::show::{active_lease, find};
use super::{LeaseId, named, verify_token};
use crate::app::App;
use crate::files::LocalProcess;
use crate::http::auth::Caller;
use crate::http::body::RequestBody;
use crate::http::response::{HttpError, answer_from_reply, error_from_reply, json, not_found, unexpected};

/// Release a lease.
///
/// Releasing an ended lease succeeds.
#[utoipa::path(
    post,
    path = "/v1/leases/{id}/release",
    tag = "leases",
    operation_id = "release",
    params(LeaseId),
    request_body = tenure_api::ReleaseRequest,
    responses((status = 200, description = "Lease has ended", body = tenure_api::LeaseResponse)),
    extensions(("x-codes" = json!(["TOKEN_INVALID", "NOT_FOUND"])))
)]
pub(super) async fn release(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: LeaseId,
    body: RequestBody<ReleaseRequest>,
) -> Result<Response, HttpError> {
    Ok(json(StatusCode::OK, &release_one(&app, &caller, &id, &body.request).await?))
}

/// Gives back.
pub(crate) async fn release_one(
    app: &App,
    caller: &Caller,
    id: &LeaseId,
    request: &ReleaseRequest,
) -> Result<LeaseResponse, HttpError> {
    let reason = reason(request.reason.as_deref())?;
    let fence = verify_token(app, caller, id, &request.token)?;
    let response =
        app.registrar.submit(Command::Release { lease: fence, claim: LeaseCredential::Token, reason }).await;
    let (answer, _) = answer_from_reply(response.reply, || app.registrar.now())?;
    let CommandOutcome::Released { lease: fence } = answer else { return Err(unexpected()) };
    let now = app.registrar.now();
    let lease = app.registrar.read(|state| find(state, fence, now)).ok_or_else(not_found)?;
    Ok(LeaseResponse { lease })
}

fn reason(name: Option<&str>) -> Result<ReleaseReason, HttpError> {
    let Some(name) = name else { return Ok(ReleaseReason::Completed) };
    let known = ReleaseReason::parse(name);
    known.map_err(|_| HttpError::invalid("reason", "must be `COMPLETED`, `ABORTED` or `VOLUNTARY`"))
}

/// Revoke a lease.
#[utoipa::path(
    post,
    path = "/v1/leases/{id}/revoke",
    tag = "leases",
    operation_id = "revoke",
    params(LeaseId),
    request_body = tenure_api::RevocationRequest,
    responses((status = 200, description = "Lease has ended", body = tenure_api::LeaseResponse)),
    extensions(("x-codes" = json!(["NOT_FOUND", "EXPIRED", "AGENT_FORBIDDEN"])))
)]
pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: LeaseId,
    local: Result<LocalProcess, HttpError>,
    body: RequestBody<RevocationRequest>,
) -> Result<Response, HttpError> {
    let request = body.request;
    check_name("reason", &request.reason)?;
    let lease = named(&app, &caller, &id)?.fence;
    let is_file = app
        .registrar
        .read(|state| state.lease(lease).is_some_and(|lease| state.file_session(lease.holder).is_some()));
    if let (true, Ok(local)) = (is_file, local) {
        local.require_human(&app)?;
    }
    let (by, detail) = (caller.principal.clone(), request.reason.into());
    let response =
        app.registrar.submit(Command::Revoke { lease, cause: RevocationCause::Revoked, by, detail }).await;
    match response.reply {
        // What is over already is as it should be; its end says that it was not by this.
        Reply::Answered {
            answer: CommandOutcome::Ended { .. } | CommandOutcome::Rejected(Rejection::Ended { .. }),
            ..
        } => {}
        reply => return Err(error_from_reply(reply, || app.registrar.now())),
    }
    let now = app.registrar.now();
    let lease = app.registrar.read(|state| find(state, lease, now)).ok_or_else(not_found)?;
    Ok(json(StatusCode::OK, &LeaseResponse { lease }))
}

/// Looks for recalls at one moment. Many leases may be on one resource, with a long queue: it is walked once.
pub(super) struct RecallLookup<'a> {
    state: &'a kernel::KernelState,
    at: Tick,
    known: BTreeMap<(&'a Resource, LeaseMode), Option<Recall>>,
}

impl<'a> RecallLookup<'a> {
    pub(super) fn new(state: &'a kernel::KernelState, at: Tick) -> Self {
        Self { state, at, known: BTreeMap::new() }
    }

    /// Who waits because this lease lives, if anybody does.
    pub(super) fn of(&mut self, lease: &LeaseView<'a>) -> Option<Recall> {
        let (state, at) = (self.state, self.at);
        let look = || find_recall(state, lease.resource, lease.terms.mode, at);
        self.known.entry((lease.resource, lease.terms.mode)).or_insert_with(look).clone()
    }
}

fn find_recall(
    state: &kernel::KernelState,
    resource: &Resource,
    held: LeaseMode,
    at: Tick,
) -> Option<Recall> {
    let waiters = state.queue_of(resource).filter(|waiting| !is_expired(at.0, waiting.until.0));
    let mut blocked = waiters.filter(|waiting| waiting.conflicts_with(resource, held));
    let first = blocked.next()?;
    Some(Recall {
        by: first.holder.as_str().to_owned(),
        waiting: 1 + blocked.count(),
        remaining_ms: remaining(at.0, first.until.0) / 1_000,
    })
}

/// Renew a lease.
#[utoipa::path(
    post,
    path = "/v1/leases/{id}/renew",
    tag = "leases",
    operation_id = "renew",
    params(LeaseId),
    request_body = tenure_api::RenewalRequest,
    responses((status = 200, description = "Lease was renewed", body = tenure_api::LeaseRenewal)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "TOKEN_INVALID", "NOT_FOUND", "OUTLIVES_PARENT", "EXPIRED"])))
)]
pub(super) async fn renew(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: LeaseId,
    body: RequestBody<RenewalRequest>,
) -> Result<Response, HttpError> {
    Ok(json(StatusCode::OK, &renew_one(&app, &caller, &id, &body.request).await?))
}

/// Renews.
pub(crate) async fn renew_one(
    app: &App,
    caller: &Caller,
    id: &LeaseId,
    request: &RenewalRequest,
) -> Result<LeaseRenewal, HttpError> {
    let fence = verify_token(app, caller, id, &request.token)?;
    let ttl = request.ttl_ms.map(TickDuration::from_millis);
    let response =
        app.registrar.submit(Command::Renew { lease: fence, credential: LeaseCredential::Token, ttl }).await;
    let (answer, stamp) = answer_from_reply(response.reply.clone(), || app.registrar.now())?;
    let CommandOutcome::Renewed { lease: fence, expires_at } = answer else { return Err(unexpected()) };
    let lease = app.registrar.read(|state| match state.lease(fence) {
        // The end that was answered, not one that came after it.
        Some(lease) => {
            let terms = &LeaseTerms { expires_at, ..lease.terms.clone() };
            Some(active_lease(state, LeaseView { terms, ..lease }, stamp))
        }
        None => find(state, fence, stamp),
    });
    let lease = lease.ok_or_else(unexpected)?;
    let valid_for_ms = expires_at.since(stamp).as_millis();
    let passport = app.registrar.passport(&response, fence);
    Ok(LeaseRenewal { lease, passport, valid_for_ms })
}
