//! Releases and revokes leases.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{OneLease, Recall, Release, Revoke};
use tenure_core::kernel;
use tenure_core::kernel::{Answer, Cause, Claim, Command, LeaseView, Mode, Refusal, Resource, Tick};
use tenure_core::lease::ReleaseReason;
use tenure_core::rules::names::check_name;
use tenure_core::rules::time::{is_over, remaining};
use tenure_registrar::Reply;

use super::show::find;
use super::{LeaseId, named, proven};
use crate::app::App;
use crate::files::Local;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::fields::Fields;
use crate::http::refusal::{answered, failure_of, not_found, unexpected};

/// Give a lease back.
///
/// Giving back what is over already is a success.
#[utoipa::path(
    post,
    path = "/v1/leases/{id}/release",
    tag = "leases",
    operation_id = "release",
    params(LeaseId),
    request_body = tenure_api::Release,
    responses((status = 200, description = "It is over", body = tenure_api::OneLease)),
    extensions(("x-codes" = json!(["TOKEN_INVALID", "NOT_FOUND"])))
)]
pub(super) async fn release(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: LeaseId,
    body: JsonBody,
) -> Result<Response, Failure> {
    Ok(json(StatusCode::OK, &release_one(&app, &caller, &id, body.fields).await?))
}

/// Gives back.
pub(in crate::http) async fn release_one(
    app: &App,
    caller: &Caller,
    id: &LeaseId,
    fields: Fields,
) -> Result<OneLease, Failure> {
    let asked = read(fields)?;
    let reason = reason(asked.reason.as_deref())?;
    let fence = proven(app, caller, id, &asked.token)?;
    let response = app.registrar.ask(Command::Release { lease: fence, claim: Claim::Token, reason }).await;
    let (answer, _) = answered(response.reply, || app.registrar.now())?;
    let Answer::Released { lease: fence } = answer else { return Err(unexpected()) };
    let now = app.registrar.now();
    let lease = app.registrar.read(|state| find(state, fence, now)).ok_or_else(not_found)?;
    Ok(OneLease { lease })
}

fn read(mut fields: Fields) -> Result<Release, Failure> {
    let asked = Release { token: fields.text("token")?, reason: fields.optional_text("reason")? };
    fields.finish()?;
    Ok(asked)
}

fn reason(name: Option<&str>) -> Result<ReleaseReason, Failure> {
    let Some(name) = name else { return Ok(ReleaseReason::Completed) };
    let known = ReleaseReason::parse(name);
    known.map_err(|_| Failure::invalid("reason", "must be `COMPLETED`, `ABORTED` or `VOLUNTARY`"))
}

/// Take a lease away from its holder.
#[utoipa::path(
    post,
    path = "/v1/leases/{id}/revoke",
    tag = "leases",
    operation_id = "revoke",
    params(LeaseId),
    request_body = tenure_api::Revoke,
    responses((status = 200, description = "It is over", body = tenure_api::OneLease)),
    extensions(("x-codes" = json!(["NOT_FOUND", "EXPIRED", "AGENT_FORBIDDEN"])))
)]
pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: LeaseId,
    local: Result<Local, Failure>,
    body: JsonBody,
) -> Result<Response, Failure> {
    let asked = read_revoke(body.fields)?;
    let lease = named(&app, &caller, &id)?.fence;
    let is_file = app
        .registrar
        .read(|state| state.lease(lease).is_some_and(|lease| state.file_session(lease.holder).is_some()));
    if let (true, Ok(local)) = (is_file, local) {
        local.must_be_a_person(&app)?;
    }
    let (by, detail) = (caller.principal.clone(), asked.reason.into());
    let response = app.registrar.ask(Command::Revoke { lease, cause: Cause::Revoked, by, detail }).await;
    match response.reply {
        // What is over already is as it should be; its end says that it was not by this.
        Reply::Answered { answer: Answer::Ended { .. } | Answer::Refused(Refusal::Over { .. }), .. } => {}
        reply => return Err(failure_of(reply, || app.registrar.now())),
    }
    let now = app.registrar.now();
    let lease = app.registrar.read(|state| find(state, lease, now)).ok_or_else(not_found)?;
    Ok(json(StatusCode::OK, &OneLease { lease }))
}

fn read_revoke(mut fields: Fields) -> Result<Revoke, Failure> {
    let asked = Revoke { reason: fields.text("reason")? };
    fields.finish()?;
    check_name("reason", &asked.reason)?;
    Ok(asked)
}

/// Looks for recalls at one moment. Many leases may be on one resource, with a long queue: it is walked once.
pub(super) struct Recalls<'a> {
    state: &'a kernel::State,
    at: Tick,
    known: BTreeMap<(&'a Resource, Mode), Option<Recall>>,
}

impl<'a> Recalls<'a> {
    pub(super) fn new(state: &'a kernel::State, at: Tick) -> Self {
        Self { state, at, known: BTreeMap::new() }
    }

    /// Who waits because this lease lives, if anybody does.
    pub(super) fn of(&mut self, lease: &LeaseView<'a>) -> Option<Recall> {
        let (state, at) = (self.state, self.at);
        let look = || recall(state, lease.resource, lease.terms.mode, at);
        self.known.entry((lease.resource, lease.terms.mode)).or_insert_with(look).clone()
    }
}

fn recall(state: &kernel::State, resource: &Resource, held: Mode, at: Tick) -> Option<Recall> {
    let waits = state.queue_of(resource).filter(|waiting| !is_over(at.0, waiting.until.0));
    let mut kept_out = waits.filter(|waiting| waiting.is_kept_out_of(resource, held));
    let first = kept_out.next()?;
    Some(Recall {
        by: first.holder.as_str().to_owned(),
        waiting: 1 + kept_out.count(),
        remaining_ms: remaining(at.0, first.until.0) / 1_000,
    })
}
