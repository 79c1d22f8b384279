//! `POST /v1/work/derive`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use tenure_core::authority::LeaseScope;
use tenure_core::kernel::{Claim, ClaimWork, Derive, Labels, Span, WorkCommand};

use super::claim::obtain;
use super::read::{actor, budget, scope, work_id};
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::leases::{LeaseId, nonce, proven, request_key};

/// Give a part of a lease to somebody else.
///
/// The new lease allows no more than this one, ends no later, and has its budget from this one's, for good: what it does
/// not use up does not come back. When this one ends, it ends too.
#[utoipa::path(
    post,
    path = "/v1/work/derive",
    tag = "work",
    operation_id = "deriveWork",
    params(("Idempotency-Key" = Option<String>, Header, description = "1 to 255 visible ASCII characters. The same request with the same key gets the same lease, until 60 s after it ends")),
    request_body = tenure_api::DeriveWork,
    responses((status = 201, description = "The new lease", body = tenure_api::GrantedWork)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "TOKEN_INVALID", "HOLDER_TAKEN", "OUT_OF_SCOPE", "NOT_FOUND", "HELD", "KEY_REUSED", "NO_AUTHORITY", "BUDGET_EXCEEDED", "OUTLIVES_PARENT", "EXPIRED", "TREE_FULL", "QUOTA_EXCEEDED"])))
)]
pub(super) async fn derive(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, Failure> {
    let key = request_key(&headers, body.digest)?;
    let mut fields = body.fields;
    let (id, token) = (LeaseId(fields.text("lease_id")?), fields.text("token")?);
    let (work_id, holder) = (work_id(&mut fields)?, actor(&mut fields)?);
    let ttl = Span::from_millis(fields.number("ttlMs")?);
    let scope = scope(&mut fields)?;
    let amounts = fields.optional_object("budget")?;
    let amounts =
        amounts.ok_or_else(|| Failure::invalid("budget", "is missing; it is taken from the lease"))?;
    let budget = budget(amounts)?;
    fields.finish()?;
    let parent = proven(&app, &caller, &id, &token)?;
    let inherited = || {
        let of_parent =
            app.registrar.read(|state| state.work(parent).map(|work| work.authority.scope.clone()));
        // Without authority there is nothing to inherit, and nothing is given.
        of_parent.unwrap_or(LeaseScope::Unlimited)
    };
    let scope = scope.unwrap_or_else(inherited);
    let (principal, labels, nonce) = (caller.principal.clone(), Labels::default(), nonce()?);
    let child = ClaimWork { principal, holder, work_id, ttl, nonce, labels, scope, budget, key };
    let claim = Claim::Token;
    obtain(&app, &caller, &child.clone(), WorkCommand::Derive(Derive { parent, claim, child })).await
}
