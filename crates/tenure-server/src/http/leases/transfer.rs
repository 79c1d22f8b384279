//! `POST /v1/leases/{id}/transfer`: to another holder, with no moment in between.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use tenure_api::Transfer;
use tenure_core::kernel::{Claim, Command, Principal};

use super::LeaseId;
use super::continued::continue_lease;
use super::wish::holder;
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::body::JsonBody;
use crate::http::fields::Fields;

pub(super) async fn transfer(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    id: LeaseId,
    body: JsonBody,
) -> Result<Response, Failure> {
    let asked = read(body.fields)?;
    let to = holder("to", &asked.to)?;
    let owner = principal.clone();
    let request = ["transfer", &asked.to, owner.as_str()];
    let command = |lease, nonce| Command::Transfer { lease, claim: Claim::Token, to, principal, nonce };
    continue_lease(&app, &id, &asked.token, &request, command).await
}

fn read(mut fields: Fields) -> Result<Transfer, Failure> {
    let asked = Transfer { token: fields.text("token")?, to: fields.text("to")? };
    fields.finish()?;
    Ok(asked)
}
