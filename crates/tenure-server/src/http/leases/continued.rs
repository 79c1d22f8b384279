//! A lease that goes on under another number: transfer, upgrade and downgrade.
//!
//! They may be repeated. The new lease's nonce follows from the old lease's token and from what was asked, so whoever
//! asks the same with the same token again is shown the lease that came of it, as long as that lives: also after a
//! restart, and without anything to remember.

use axum::http::StatusCode;
use axum::response::Response;
use tenure_core::kernel::{Answer, Cause, Command, End, Fence, Nonce, Refusal, State, Tick};
use tenure_core::rules::time::is_over;
use tenure_registrar::Reply;

use super::granted::granted;
use super::{LeaseId, proven};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
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
fn continuation(state: &State, before: Fence, nonce: Nonce, at: Tick) -> Option<Fence> {
    let resource = &state.ended(before)?.resource;
    let mut leases = state.leases_on_resource(resource);
    let found = leases.find(|lease| lease.nonce == nonce && !is_over(at.0, lease.expires_at.0));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_lease_or_another_request_leads_to_another_nonce() {
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
