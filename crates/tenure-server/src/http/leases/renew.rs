//! `POST /v1/leases/{id}/renew`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{Renew, Renewed};
use tenure_core::kernel::{Answer, Claim, Command, LeaseView, Span, Terms};

use super::show::{find, live};
use super::{LeaseId, proven};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::fields::Fields;
use crate::http::refusal::{answered, unexpected};

/// Renew a lease.
#[utoipa::path(
    post,
    path = "/v1/leases/{id}/renew",
    tag = "leases",
    operation_id = "renew",
    params(LeaseId),
    request_body = tenure_api::Renew,
    responses((status = 200, description = "It lives on", body = tenure_api::Renewed)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "TOKEN_INVALID", "NOT_FOUND", "OUTLIVES_PARENT", "EXPIRED"])))
)]
pub(super) async fn renew(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: LeaseId,
    body: JsonBody,
) -> Result<Response, Failure> {
    Ok(json(StatusCode::OK, &renew_one(&app, &caller, &id, body.fields).await?))
}

/// Renews.
pub(in crate::http) async fn renew_one(
    app: &App,
    caller: &Caller,
    id: &LeaseId,
    fields: Fields,
) -> Result<Renewed, Failure> {
    let asked = read(fields)?;
    let fence = proven(app, caller, id, &asked.token)?;
    let ttl = asked.ttl_ms.map(Span::from_millis);
    let response = app.registrar.ask(Command::Renew { lease: fence, claim: Claim::Token, ttl }).await;
    let (answer, stamp) = answered(response.reply.clone(), || app.registrar.now())?;
    let Answer::Renewed { lease: fence, expires_at } = answer else { return Err(unexpected()) };
    let lease = app.registrar.read(|state| match state.lease(fence) {
        // The end that was answered, not one that came after it.
        Some(lease) => {
            let terms = &Terms { expires_at, ..lease.terms.clone() };
            Some(live(state, LeaseView { terms, ..lease }, stamp))
        }
        None => find(state, fence, stamp),
    });
    let lease = lease.ok_or_else(unexpected)?;
    let valid_for_ms = expires_at.since(stamp).as_millis();
    let passport = app.registrar.passport(&response, fence);
    Ok(Renewed { lease, passport, valid_for_ms })
}

fn read(mut fields: Fields) -> Result<Renew, Failure> {
    let asked = Renew { token: fields.text("token")?, ttl_ms: fields.optional_number("ttlMs")? };
    fields.finish()?;
    Ok(asked)
}
