//! `POST /v1/work/claim`, and how a lease with authority is got and told.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tenure_api::{Code, GrantedWork};
use tenure_core::authority::work_resource;
use tenure_core::kernel::{ClaimWork, Command, Labels, Span, WorkCommand};

use super::read::{actor, bounds, scope, work_id};
use super::show::work_of;
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::JsonBody;
use crate::http::leases::{deliver, granted, nonce, request_key};
use crate::http::refusal::{failure_of, unexpected};
use crate::refusals::Wanted;
use crate::registrar::Asked;
use crate::tokens::Scope;

/// How long a claim lasts where nothing is said about it.
const USUAL_TTL_MS: u64 = 60_000;

/// Claim a piece of work.
///
/// An exclusive lease on `work:{work_id}` that says what its holder may do and how much of it. Nobody waits for it: what is
/// held is refused at once.
#[utoipa::path(
    post,
    path = "/v1/work/claim",
    tag = "work",
    operation_id = "claimWork",
    params(("Idempotency-Key" = Option<String>, Header, description = "1 to 255 visible ASCII characters. The same request with the same key gets the same lease, until 60 s after it ends")),
    request_body = tenure_api::ClaimWork,
    responses((status = 201, description = "The work is yours", body = tenure_api::GrantedWork)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "HOLDER_TAKEN", "HELD", "KEY_REUSED", "EXPIRED", "QUOTA_EXCEEDED"])))
)]
pub(super) async fn claim(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, Failure> {
    let key = request_key(&headers, body.digest)?;
    let mut fields = body.fields;
    let (work_id, holder) = (work_id(&mut fields)?, actor(&mut fields)?);
    let ttl = Span::from_millis(fields.optional_number("ttlMs")?.unwrap_or(USUAL_TTL_MS));
    let scope = scope(&mut fields)?.unwrap_or(tenure_core::authority::LeaseScope::Unlimited);
    let budget = bounds(&mut fields)?;
    let labels = fields.texts("labels")?;
    fields.finish()?;
    let labels = Labels::parse(labels.iter().map(|(name, value)| (name.as_str(), value.as_str())))?;
    let principal = caller.principal.clone();
    let nonce = nonce()?;
    let claim = ClaimWork { principal, holder, work_id, ttl, nonce, labels, scope, budget, key };
    obtain(&app, &caller, &claim.clone(), WorkCommand::Claim(claim)).await
}

/// Gets a lease for a caller and tells it. What nobody takes is taken back, unless the request had a key.
pub(super) async fn obtain(
    app: &App,
    caller: &Caller,
    claim: &ClaimWork,
    command: WorkCommand,
) -> Result<Response, Failure> {
    let resource = work_resource(&claim.work_id)?;
    caller.require_resource(resource.as_str())?;
    let (principal, has_key) = (claim.principal.clone(), claim.key.is_some());
    let command = Command::Work(Box::new(command));
    let given = match app.registrar.obtain(principal.clone(), has_key, command).await {
        Asked::Given(given) => given,
        // Nobody waits for work.
        Asked::InLine(_) => return Err(unexpected()),
        Asked::Not(reply) => {
            let failure = failure_of(reply, || app.registrar.now());
            let is_about_it = !matches!(failure.0.code, Code::Forbidden | Code::Unauthorized);
            if is_about_it {
                let wanted = Wanted::one(principal, claim.holder.clone(), resource);
                app.refusals.note(wanted, &failure.0, app.registrar.now());
            }
            return Err(failure);
        }
    };
    // The token was good a moment ago: whoever revoked it meanwhile has ended what there was by then.
    caller.require(Scope::LeasesWrite)?;
    let [fence] = given.leases[..] else { return Err(unexpected()) };
    let told = granted(app, &given.response, fence, given.stamp)?;
    let work = app.registrar.read(|state| work_of(state, fence)).ok_or_else(unexpected)?;
    let tenure_api::Granted { lease, token, passport, valid_for_ms } = told;
    let told = GrantedWork { lease, work, token, passport, valid_for_ms };
    Ok(deliver(json(StatusCode::CREATED, &told), given.undelivered))
}
