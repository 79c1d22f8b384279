//! `POST /v1/leases/{id}/revoke`: an administrator ends a lease.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{OneLease, Revoke};
use tenure_core::kernel::{Answer, Cause, Command, Refusal};
use tenure_core::rules::names::check_name;
use tenure_registrar::Reply;

use super::show::find;
use super::{LeaseId, named};
use crate::app::App;
use crate::files::Local;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::fields::Fields;
use crate::http::refusal::{failure_of, not_found};

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
    let asked = read(body.fields)?;
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

fn read(mut fields: Fields) -> Result<Revoke, Failure> {
    let asked = Revoke { reason: fields.text("reason")? };
    fields.finish()?;
    check_name("reason", &asked.reason)?;
    Ok(asked)
}
