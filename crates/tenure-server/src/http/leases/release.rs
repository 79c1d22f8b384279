//! `POST /v1/leases/{id}/release`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{OneLease, Release};
use tenure_core::kernel::{Answer, Claim, Command};
use tenure_core::lease::ReleaseReason;

use super::show::find;
use super::{LeaseId, proven};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::fields::Fields;
use crate::http::refusal::{answered, not_found, unexpected};

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
