//! `POST /v1/leases/{id}/renew`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{LeaseRenewal, RenewalRequest};
use tenure_core::kernel::{Command, CommandOutcome, LeaseCredential, LeaseTerms, LeaseView, TickDuration};

use super::show::{active_lease, find};
use super::{LeaseId, verify_token};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::fields::Fields;
use crate::http::reply_error::{answer_from_reply, unexpected};
use crate::http::response::{HttpError, json};

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
    body: JsonBody,
) -> Result<Response, HttpError> {
    Ok(json(StatusCode::OK, &renew_one(&app, &caller, &id, body.fields).await?))
}

/// Renews.
pub(in crate::http) async fn renew_one(
    app: &App,
    caller: &Caller,
    id: &LeaseId,
    fields: Fields,
) -> Result<LeaseRenewal, HttpError> {
    let request = read(fields)?;
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

fn read(mut fields: Fields) -> Result<RenewalRequest, HttpError> {
    let request = RenewalRequest { token: fields.text("token")?, ttl_ms: fields.optional_number("ttlMs")? };
    fields.reject_remaining()?;
    Ok(request)
}
