//! `POST /v1/work/spend`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tenure_api::Spent;
use tenure_core::kernel::{Answer, Claim, Command, Spend, WorkCommand};

use super::read::{amount, purpose, shown};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::leases::{LeaseId, proven, request_key};
use crate::http::refusal::{answered, unexpected};

/// Use up something of what a lease allows.
///
/// All of it or nothing. With a key, a request that is repeated spends once. Spending nothing asks whether the lease
/// lives and allows what it is for.
#[utoipa::path(
    post,
    path = "/v1/work/spend",
    tag = "work",
    operation_id = "spendWork",
    params(("Idempotency-Key" = Option<String>, Header, description = "1 to 255 visible ASCII characters. The same request with the same key spends once, and gets the same answer for 60 s")),
    request_body = tenure_api::SpendWork,
    responses((status = 200, description = "It is used up", body = tenure_api::Spent)),
    extensions(("x-codes" = json!(["TOKEN_INVALID", "OUT_OF_SCOPE", "NOT_FOUND", "KEY_REUSED", "NO_AUTHORITY", "BUDGET_EXCEEDED", "EXPIRED"])))
)]
pub(super) async fn spend(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, Failure> {
    let key = request_key(&headers, body.digest)?;
    let mut fields = body.fields;
    let (id, token) = (LeaseId(fields.text("lease_id")?), fields.text("token")?);
    let (amount, purpose) = (amount(&mut fields)?, purpose(&mut fields)?);
    fields.finish()?;
    let lease = proven(&app, &caller, &id, &token)?;
    let spend = Spend { lease, claim: Claim::Token, amount, purpose, key };
    let response = app.registrar.ask(Command::Work(Box::new(WorkCommand::Spend(spend)))).await;
    let (answer, _) = answered(response.reply, || app.registrar.now())?;
    let Answer::Spent { left, .. } = answer else { return Err(unexpected()) };
    let told = Spent { lease_id: id.0, remaining: shown(left), exhausted: left.is_exhausted() };
    Ok(json(StatusCode::OK, &told))
}
