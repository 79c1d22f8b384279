//! `POST /v1/leases/{id}/transfer`: to another holder, with no moment in between.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use tenure_api::Transfer;
use tenure_core::kernel::{Claim, Command};

use super::LeaseId;
use super::continued::continue_lease;
use super::wish::holder;
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::fields::Fields;

/// Hand a lease on to another holder, with no moment in between.
#[utoipa::path(
    post,
    path = "/v1/leases/{id}/transfer",
    tag = "leases",
    operation_id = "transfer",
    params(LeaseId),
    request_body = tenure_api::Transfer,
    responses((status = 200, description = "The lease that goes on, with a new id, fence and token", body = tenure_api::Granted)),
    extensions(("x-codes" = json!(["TOKEN_INVALID", "HOLDER_TAKEN", "NOT_FOUND", "HELD", "DEADLOCK", "AUTHORITY_BOUND", "EXPIRED", "QUOTA_EXCEEDED", "TTL_OUT_OF_RANGE"])))
)]
pub(super) async fn transfer(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: LeaseId,
    body: JsonBody,
) -> Result<Response, Failure> {
    let asked = read(body.fields)?;
    let to = holder("to", &asked.to)?;
    // The next holder belongs to whoever asks.
    let principal = caller.principal.clone();
    let request = ["transfer", &asked.to, caller.principal.as_str()];
    let command = |lease, nonce| Command::Transfer { lease, claim: Claim::Token, to, principal, nonce };
    continue_lease(&app, &caller, &id, &asked.token, &request, command).await
}

fn read(mut fields: Fields) -> Result<Transfer, Failure> {
    let asked = Transfer { token: fields.text("token")?, to: fields.text("to")? };
    fields.finish()?;
    Ok(asked)
}
