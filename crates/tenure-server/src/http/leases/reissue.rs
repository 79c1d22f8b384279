//! Transfers a lease to another holder, and changes its mode: the old lease ends and a new one begins in one decision.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::Transfer;
use tenure_core::kernel::{
    self, Answer, Cause, ChangeMode, Claim, Command, End, Fence, Mode, Nonce, Refusal, Tick,
};
use tenure_core::rules::time::is_over;
use tenure_registrar::Reply;

use super::acquire::granted;
use super::wish::{holder, mode};
use super::{LeaseId, proven};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::fields::Fields;
use crate::http::refusal::failure_of;
use crate::refusals::Wanted;

/// What a nonce is derived for. It never changes: a repeat after an update must find what was granted before it.
const CONTEXT: &str = "tenure 2026 the lease that continues another";

/// Lets the lease go on. `asked` is everything that tells this request from another one about the same lease.
pub(super) async fn continue_lease(
    app: &App,
    caller: &Caller,
    id: &LeaseId,
    token: &str,
    asked: &[&str],
    command: impl FnOnce(Fence, Nonce) -> Command,
) -> Result<Response, Failure> {
    let before = proven(app, caller, id, token)?;
    let nonce = nonce_after(token, asked);
    let response = app.registrar.ask(command(before, nonce)).await;
    let (lease, stamp) = match &response.reply {
        Reply::Answered { answer: Answer::Continued { lease, .. }, stamp } => (*lease, *stamp),
        Reply::Answered { answer: Answer::Refused(refusal), stamp } if is_continued(refusal) => {
            let found = app.registrar.read(|state| continuation(state, before, nonce, *stamp));
            (found.ok_or_else(|| failure_of(response.reply.clone(), || *stamp))?, *stamp)
        }
        _ => {
            let failure = failure_of(response.reply, || app.registrar.now());
            if let Some(wanted) = app.registrar.read(|state| Wanted::by_holder(state, before)) {
                app.refusals.note(wanted, &failure.0, app.registrar.now());
            }
            return Err(failure);
        }
    };
    Ok(json(StatusCode::OK, &granted(app, &response, lease, stamp)?))
}

fn is_continued(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Over { end: End::Revoked(Cause::Transferred), .. })
}

/// The lease that came of the same request before, if it lives.
fn continuation(state: &kernel::State, before: Fence, nonce: Nonce, at: Tick) -> Option<Fence> {
    let resource = &state.ended(before)?.resource;
    let mut leases = state.leases_on_resource(resource);
    let found = leases.find(|lease| lease.terms.nonce == nonce && !is_over(at.0, lease.terms.expires_at.0));
    found.map(|lease| lease.fence)
}

/// Whoever knows the old token can compute this nonce, and gains nothing: the new token needs the token key. The old
/// token does not follow from the nonce, which stands in the ledger.
fn nonce_after(token: &str, asked: &[&str]) -> Nonce {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    for part in std::iter::once(&token).chain(asked) {
        // With their lengths, or two different requests could be the same bytes.
        hasher.update(&part.len().to_be_bytes()).update(part.as_bytes());
    }
    let mut nonce = [0; 16];
    nonce.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    Nonce(nonce)
}

/// A [`tenure_api::ChangeMode`] that was read. It has no `Debug`, because of the token.
pub(super) struct Asked {
    token: String,
    mode: Mode,
}

impl Asked {
    /// `usual` is what is meant by no mode.
    pub(super) fn read(mut fields: Fields, usual: Mode) -> Result<Self, Failure> {
        let asked =
            tenure_api::ChangeMode { token: fields.text("token")?, mode: fields.optional_text("mode")? };
        fields.finish()?;
        Ok(Self { token: asked.token, mode: asked.mode.as_deref().map_or(Ok(usual), mode)? })
    }

    pub(super) async fn change(
        self,
        app: &App,
        caller: &Caller,
        id: &LeaseId,
        what: &str,
        command: impl FnOnce(ChangeMode) -> Command,
    ) -> Result<Response, Failure> {
        let mode = self.mode;
        let command = |lease, nonce| command(ChangeMode { lease, claim: Claim::Token, mode, nonce });
        continue_lease(app, caller, id, &self.token, &[what, mode.as_str()], command).await
    }
}

/// Hold a lease in a stronger mode.
#[utoipa::path(
    post,
    path = "/v1/leases/{id}/upgrade",
    tag = "leases",
    operation_id = "upgrade",
    params(LeaseId),
    request_body = tenure_api::ChangeMode,
    responses((status = 200, description = "The lease that goes on, with a new id, fence and token", body = tenure_api::Granted)),
    extensions(("x-codes" = json!(["TOKEN_INVALID", "HOLDER_TAKEN", "NOT_FOUND", "HELD", "DEADLOCK", "AUTHORITY_BOUND", "EXPIRED", "QUOTA_EXCEEDED", "TTL_OUT_OF_RANGE"])))
)]
pub(super) async fn upgrade(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: LeaseId,
    body: JsonBody,
) -> Result<Response, Failure> {
    let asked = Asked::read(body.fields, Mode::Exclusive)?;
    asked.change(&app, &caller, &id, "upgrade", Command::Upgrade).await
}

/// Hold a lease in a weaker mode, so that others may come in.
#[utoipa::path(
    post,
    path = "/v1/leases/{id}/downgrade",
    tag = "leases",
    operation_id = "downgrade",
    params(LeaseId),
    request_body = tenure_api::ChangeMode,
    responses((status = 200, description = "The lease that goes on, with a new id, fence and token", body = tenure_api::Granted)),
    extensions(("x-codes" = json!(["TOKEN_INVALID", "HOLDER_TAKEN", "NOT_FOUND", "HELD", "DEADLOCK", "AUTHORITY_BOUND", "EXPIRED", "QUOTA_EXCEEDED", "TTL_OUT_OF_RANGE"])))
)]
pub(super) async fn downgrade(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: LeaseId,
    body: JsonBody,
) -> Result<Response, Failure> {
    let asked = Asked::read(body.fields, Mode::Shared)?;
    asked.change(&app, &caller, &id, "downgrade", Command::Downgrade).await
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_different_lease_or_request_derives_a_different_nonce() {
        let all = [
            nonce_after("token", &["transfer", "bob"]),
            nonce_after("other", &["transfer", "bob"]),
            nonce_after("token", &["transfer", "eve"]),
            nonce_after("token", &["transferb", "ob"]),
            nonce_after("token", &["upgrade", "bob"]),
        ];
        for (index, nonce) in all.iter().enumerate() {
            assert!(!all[index + 1..].contains(nonce), "{index}");
        }
        assert_eq!(all[0], nonce_after("token", &["transfer", "bob"]));
    }
}
