//! Transfers a lease to another holder, and changes its mode: the old lease ends and a new one begins in one decision.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{ModeChangeRequest, TransferRequest};
use tenure_core::kernel::{
    self, ChangeMode, Command, CommandOutcome, Fence, LeaseCredential, LeaseEnd, LeaseMode, Nonce, Rejection,
    RevocationCause, Tick,
};
use tenure_core::rules::is_expired;
use tenure_registrar::Reply;

use super::acquire::granted;
use super::parse::{holder, mode};
use super::{LeaseId, verify_token};
use crate::app::App;
use crate::explain::denial_log::RequestSummary;
use crate::http::auth::Caller;
use crate::http::body::RequestBody;
use crate::http::response::{HttpError, error_from_reply, json};

/// What a nonce is derived for. It never changes: a repeat after an update must find what was granted before it.
const CONTEXT: &str = "tenure 2026 the lease that continues another";

/// Reissues the lease. `request` is what distinguishes this request from other requests about the same lease.
pub(super) async fn reissue(
    app: &App,
    caller: &Caller,
    id: &LeaseId,
    token: &str,
    request: &[&str],
    command: impl FnOnce(Fence, Nonce) -> Command,
) -> Result<Response, HttpError> {
    let before = verify_token(app, caller, id, token)?;
    let nonce = nonce_after(token, request);
    let response = app.registrar.submit(command(before, nonce)).await;
    let (lease, stamp) = match &response.reply {
        Reply::Answered { answer: CommandOutcome::Reissued { lease, .. }, stamp } => (*lease, *stamp),
        Reply::Answered { answer: CommandOutcome::Rejected(rejection), stamp } if is_reissued(rejection) => {
            let found = app.registrar.read(|state| continuation(state, before, nonce, *stamp));
            (found.ok_or_else(|| error_from_reply(response.reply.clone(), || *stamp))?, *stamp)
        }
        _ => {
            let failure = error_from_reply(response.reply, || app.registrar.now());
            if let Some(summary) = app.registrar.read(|state| RequestSummary::from_lease(state, before)) {
                app.denials.record(summary, &failure.0, app.registrar.now());
            }
            return Err(failure);
        }
    };
    Ok(json(StatusCode::OK, &granted(app, &response, lease, stamp)?))
}

fn is_reissued(rejection: &Rejection) -> bool {
    matches!(rejection, Rejection::Ended { end: LeaseEnd::Revoked(RevocationCause::Transferred), .. })
}

/// The lease that came of the same request before, if it lives.
fn continuation(state: &kernel::KernelState, before: Fence, nonce: Nonce, at: Tick) -> Option<Fence> {
    let resource = &state.ended_lease(before)?.resource;
    let mut leases = state.leases_on_resource(resource);
    let found =
        leases.find(|lease| lease.terms.nonce == nonce && !is_expired(at.0, lease.terms.expires_at.0));
    found.map(|lease| lease.fence)
}

/// Whoever knows the old token can compute this nonce, and gains nothing: the new token needs the token key. The old
/// token does not follow from the nonce, which stands in the ledger.
fn nonce_after(token: &str, request: &[&str]) -> Nonce {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    for part in std::iter::once(&token).chain(request) {
        // With their lengths, or two different requests could be the same bytes.
        hasher.update(&part.len().to_be_bytes()).update(part.as_bytes());
    }
    let mut nonce = [0; 16];
    nonce.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    Nonce(nonce)
}

/// Changes the mode of a lease, by default to `default_mode`. `action` distinguishes upgrades from downgrades.
async fn change_mode(
    app: &App,
    caller: &Caller,
    id: &LeaseId,
    request: &ModeChangeRequest,
    (action, default_mode): (&str, LeaseMode),
    command: impl FnOnce(ChangeMode) -> Command,
) -> Result<Response, HttpError> {
    let mode = request.mode.as_deref().map_or(Ok(default_mode), mode)?;
    let command =
        |lease, nonce| command(ChangeMode { lease, credential: LeaseCredential::Token, mode, nonce });
    reissue(app, caller, id, &request.token, &[action, mode.as_str()], command).await
}

/// Upgrade a lease to a stronger mode.
#[utoipa::path(
    post,
    path = "/v1/leases/{id}/upgrade",
    tag = "leases",
    operation_id = "upgrade",
    params(LeaseId),
    request_body = tenure_api::ModeChangeRequest,
    responses((status = 200, description = "Replacement lease with a new id, fence and token", body = tenure_api::LeaseGrant)),
    extensions(("x-codes" = json!(["TOKEN_INVALID", "HOLDER_TAKEN", "NOT_FOUND", "HELD", "DEADLOCK", "AUTHORITY_BOUND", "EXPIRED", "QUOTA_EXCEEDED", "TTL_OUT_OF_RANGE"])))
)]
pub(super) async fn upgrade(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: LeaseId,
    body: RequestBody<ModeChangeRequest>,
) -> Result<Response, HttpError> {
    let default = ("upgrade", LeaseMode::Exclusive);
    change_mode(&app, &caller, &id, &body.request, default, Command::Upgrade).await
}

/// Downgrade a lease to a weaker mode.
#[utoipa::path(
    post,
    path = "/v1/leases/{id}/downgrade",
    tag = "leases",
    operation_id = "downgrade",
    params(LeaseId),
    request_body = tenure_api::ModeChangeRequest,
    responses((status = 200, description = "Replacement lease with a new id, fence and token", body = tenure_api::LeaseGrant)),
    extensions(("x-codes" = json!(["TOKEN_INVALID", "HOLDER_TAKEN", "NOT_FOUND", "HELD", "DEADLOCK", "AUTHORITY_BOUND", "EXPIRED", "QUOTA_EXCEEDED", "TTL_OUT_OF_RANGE"])))
)]
pub(super) async fn downgrade(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: LeaseId,
    body: RequestBody<ModeChangeRequest>,
) -> Result<Response, HttpError> {
    let default = ("downgrade", LeaseMode::Shared);
    change_mode(&app, &caller, &id, &body.request, default, Command::Downgrade).await
}

/// Transfer a lease to another holder atomically.
#[utoipa::path(
    post,
    path = "/v1/leases/{id}/transfer",
    tag = "leases",
    operation_id = "transfer",
    params(LeaseId),
    request_body = tenure_api::TransferRequest,
    responses((status = 200, description = "Replacement lease with a new id, fence and token", body = tenure_api::LeaseGrant)),
    extensions(("x-codes" = json!(["TOKEN_INVALID", "HOLDER_TAKEN", "NOT_FOUND", "HELD", "DEADLOCK", "AUTHORITY_BOUND", "EXPIRED", "QUOTA_EXCEEDED", "TTL_OUT_OF_RANGE"])))
)]
pub(super) async fn transfer(
    State(app): State<Arc<App>>,
    caller: Caller,
    id: LeaseId,
    body: RequestBody<TransferRequest>,
) -> Result<Response, HttpError> {
    let request = &body.request;
    let to = holder("to", &request.to)?;
    // The next holder belongs to whoever asks.
    let principal = caller.principal.clone();
    let parts = ["transfer", &request.to, caller.principal.as_str()];
    let command =
        |lease, nonce| Command::Transfer { lease, claim: LeaseCredential::Token, to, principal, nonce };
    reissue(&app, &caller, &id, &request.token, &parts, command).await
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
