//! Work API: leases with a scope and a budget. Routes and requests.

mod parse;

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use parse::{budget, budget_limits, budget_view, purpose, scope, spent_budget, work_id};
use tenure_api::{
    Code, ReleaseRequest, RenewalRequest, SpendResult, WorkClaimRequest, WorkDerivationRequest, WorkGrant,
    WorkReleaseRequest, WorkRenewalRequest, WorkResponse, WorkSpendRequest, WorkView,
};
use tenure_core::authority::{LeaseScope, work_id_of, work_resource};
use tenure_core::kernel;
use tenure_core::kernel::{
    ClaimWork, Command, CommandOutcome, DeriveLease, Fence, Labels, LeaseCredential, SpendBudget,
    TickDuration, WorkCommand,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) use self::parse::budget_view as amounts;
use crate::app::App;
use crate::engine::AcquireOutcome;
use crate::explain::denial_log::RequestSummary;
use crate::http::auth::Caller;
use crate::http::body::RequestBody;
use crate::http::response::{
    HttpError, answer_from_reply, error_from_reply, json, not_a_work_lease, not_found, unexpected,
};
use crate::leases::{
    LeaseId, fence_of_lease_id, find, granted, holder, nonce, parse_idempotency_key, release_one, renew_one,
    revoke_unless_delivered, verify_token,
};
use crate::tokens::TokenScope;

/// The routes of work.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(claim))
        .routes(routes!(derive))
        .routes(routes!(spend))
        .routes(routes!(renew))
        .routes(routes!(release))
        .routes(routes!(show))
}

/// How long a claim lasts where nothing is said about it.
const DEFAULT_TTL_MS: u64 = 60_000;

/// Claim a work item.
///
/// Grants an exclusive lease on `work:{work_id}` with a scope and a budget. A held item is denied at once.
#[utoipa::path(
    post,
    path = "/v1/work/claim",
    tag = "work",
    operation_id = "claimWork",
    params(("Idempotency-Key" = Option<String>, Header, description = "Idempotency key, 1 to 255 visible ASCII characters. Repeating the request with it returns the same lease until 60 s after it ends")),
    request_body = tenure_api::WorkClaimRequest,
    responses((status = 201, description = "Work item was claimed", body = tenure_api::WorkGrant)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "HOLDER_TAKEN", "HELD", "KEY_REUSED", "EXPIRED", "QUOTA_EXCEEDED"])))
)]
async fn claim(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    body: RequestBody<WorkClaimRequest>,
) -> Result<Response, HttpError> {
    let key = parse_idempotency_key(&headers, body.digest)?;
    let request = body.request;
    let (work_id, holder) = (work_id(&request.work_id)?, holder("actor_id", &request.actor_id)?);
    let ttl = TickDuration::from_millis(request.ttl_ms.unwrap_or(DEFAULT_TTL_MS));
    let scope = request.scope.as_ref().map_or(Ok(LeaseScope::Unlimited), scope)?;
    let budget = budget_limits(&request.budget.unwrap_or_default())?;
    let labels = request.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let labels = Labels::parse(labels)?;
    let principal = caller.principal.clone();
    let nonce = nonce()?;
    let claim = ClaimWork { principal, holder, work_id, ttl, nonce, labels, scope, budget, key };
    acquire_work(&app, &caller, &claim.clone(), WorkCommand::Claim(claim)).await
}

/// Gets a lease for a caller and tells it. What nobody takes is taken back, unless the request had a key.
async fn acquire_work(
    app: &App,
    caller: &Caller,
    claim: &ClaimWork,
    command: WorkCommand,
) -> Result<Response, HttpError> {
    let resource = work_resource(&claim.work_id)?;
    caller.require_resource(resource.as_str())?;
    let (principal, has_key) = (claim.principal.clone(), claim.key.is_some());
    let command = Command::Work(Box::new(command));
    let grant = match app.registrar.acquire_with(principal.clone(), has_key, command).await {
        AcquireOutcome::Granted(grant) => grant,
        // Nobody waits for work.
        AcquireOutcome::Queued(_) => return Err(unexpected()),
        AcquireOutcome::NotGranted(reply) => {
            let failure = error_from_reply(reply, || app.registrar.now());
            let is_about_it = !matches!(failure.0.code, Code::Forbidden | Code::Unauthorized);
            if is_about_it {
                let summary = RequestSummary::from_resource(principal, claim.holder.clone(), resource);
                app.denials.record(summary, &failure.0, app.registrar.now());
            }
            return Err(failure);
        }
    };
    // The token was good a moment ago: whoever revoked it meanwhile has ended what there was by then.
    caller.require(TokenScope::LeasesWrite)?;
    let [fence] = grant.leases[..] else { return Err(unexpected()) };
    let lease_grant = granted(app, &grant.response, fence, grant.stamp)?;
    let work = app.registrar.read(|state| work_of(state, fence)).ok_or_else(unexpected)?;
    let tenure_api::LeaseGrant { lease, token, passport, valid_for_ms } = lease_grant;
    let work_grant = WorkGrant { lease, work, token, passport, valid_for_ms };
    Ok(revoke_unless_delivered(json(StatusCode::CREATED, &work_grant), grant.revoke_on_drop))
}

/// Derive a lease from a work lease.
///
/// The derived lease allows no more than its parent, ends no later, and ends when the parent ends. Its budget
/// is deducted from the parent; unspent budget is not returned.
#[utoipa::path(
    post,
    path = "/v1/work/derive",
    tag = "work",
    operation_id = "deriveWork",
    params(("Idempotency-Key" = Option<String>, Header, description = "Idempotency key, 1 to 255 visible ASCII characters. Repeating the request with it returns the same lease until 60 s after it ends")),
    request_body = tenure_api::WorkDerivationRequest,
    responses((status = 201, description = "Derived lease was granted", body = tenure_api::WorkGrant)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "TOKEN_INVALID", "HOLDER_TAKEN", "OUT_OF_SCOPE", "NOT_FOUND", "HELD", "KEY_REUSED", "NO_AUTHORITY", "BUDGET_EXCEEDED", "OUTLIVES_PARENT", "EXPIRED", "TREE_FULL", "QUOTA_EXCEEDED"])))
)]
async fn derive(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    body: RequestBody<WorkDerivationRequest>,
) -> Result<Response, HttpError> {
    let key = parse_idempotency_key(&headers, body.digest)?;
    let request = body.request;
    let (work_id, holder) = (work_id(&request.work_id)?, holder("actor_id", &request.actor_id)?);
    let ttl = TickDuration::from_millis(request.ttl_ms);
    let scope = request.scope.as_ref().map(scope).transpose()?;
    let budget = budget(&request.budget)?;
    let parent = verify_token(&app, &caller, &LeaseId(request.lease_id), &request.token)?;
    let inherited = || {
        let of_parent =
            app.registrar.read(|state| state.work_lease(parent).map(|work| work.authority.scope.clone()));
        // Without authority there is nothing to inherit, and nothing is given.
        of_parent.unwrap_or(LeaseScope::Unlimited)
    };
    let scope = scope.unwrap_or_else(inherited);
    let (principal, labels, nonce) = (caller.principal.clone(), Labels::default(), nonce()?);
    let child = ClaimWork { principal, holder, work_id, ttl, nonce, labels, scope, budget, key };
    let claim = LeaseCredential::Token;
    acquire_work(
        &app,
        &caller,
        &child.clone(),
        WorkCommand::Derive(DeriveLease { parent, credential: claim, child }),
    )
    .await
}

/// Spend budget of a work lease.
///
/// Spends all amounts or none. Zero amounts check that the lease is active and allows `for`.
#[utoipa::path(
    post,
    path = "/v1/work/spend",
    tag = "work",
    operation_id = "spendWork",
    params(("Idempotency-Key" = Option<String>, Header, description = "Idempotency key, 1 to 255 visible ASCII characters. Repeating the request with it spends once and returns the same response for 60 s")),
    request_body = tenure_api::WorkSpendRequest,
    responses((status = 200, description = "Budget was spent", body = tenure_api::SpendResult)),
    extensions(("x-codes" = json!(["TOKEN_INVALID", "OUT_OF_SCOPE", "NOT_FOUND", "KEY_REUSED", "NO_AUTHORITY", "BUDGET_EXCEEDED", "EXPIRED"])))
)]
async fn spend(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    body: RequestBody<WorkSpendRequest>,
) -> Result<Response, HttpError> {
    let key = parse_idempotency_key(&headers, body.digest)?;
    let request = body.request;
    let (amount, purpose) = (spent_budget(&request)?, purpose(request.purpose)?);
    let id = LeaseId(request.lease_id);
    let lease = verify_token(&app, &caller, &id, &request.token)?;
    let spend = SpendBudget { lease, credential: LeaseCredential::Token, amount, purpose, key };
    let response = app.registrar.submit(Command::Work(Box::new(WorkCommand::Spend(spend)))).await;
    let (answer, _) = answer_from_reply(response.reply, || app.registrar.now())?;
    let CommandOutcome::Spent { remaining, .. } = answer else { return Err(unexpected()) };
    let result = SpendResult {
        lease_id: id.0,
        remaining: budget_view(remaining),
        exhausted: remaining.is_exhausted(),
    };
    Ok(json(StatusCode::OK, &result))
}

/// Renew a work lease.
///
/// A derived lease cannot be renewed beyond the end of its parent.
#[utoipa::path(
    post,
    path = "/v1/work/renew",
    tag = "work",
    operation_id = "renewWork",
    request_body = tenure_api::WorkRenewalRequest,
    responses((status = 200, description = "Lease was renewed", body = tenure_api::LeaseRenewal)),
    extensions(("x-codes" = json!(["TTL_OUT_OF_RANGE", "TOKEN_INVALID", "NOT_FOUND", "OUTLIVES_PARENT", "EXPIRED"])))
)]
async fn renew(
    State(app): State<Arc<App>>,
    caller: Caller,
    body: RequestBody<WorkRenewalRequest>,
) -> Result<Response, HttpError> {
    let WorkRenewalRequest { lease_id, token, ttl_ms } = body.request;
    let request = RenewalRequest { token, ttl_ms };
    Ok(json(StatusCode::OK, &renew_one(&app, &caller, &LeaseId(lease_id), &request).await?))
}

/// Release a work lease and the leases derived from it.
#[utoipa::path(
    post,
    path = "/v1/work/release",
    tag = "work",
    operation_id = "releaseWork",
    request_body = tenure_api::WorkReleaseRequest,
    responses((status = 200, description = "Lease has ended", body = tenure_api::LeaseResponse)),
    extensions(("x-codes" = json!(["TOKEN_INVALID", "NOT_FOUND"])))
)]
async fn release(
    State(app): State<Arc<App>>,
    caller: Caller,
    body: RequestBody<WorkReleaseRequest>,
) -> Result<Response, HttpError> {
    let WorkReleaseRequest { lease_id, token, reason } = body.request;
    let request = ReleaseRequest { token, reason };
    Ok(json(StatusCode::OK, &release_one(&app, &caller, &LeaseId(lease_id), &request).await?))
}

/// Get a work lease with its scope and budget.
#[utoipa::path(
    get,
    path = "/v1/work/{lease_id}",
    tag = "work",
    operation_id = "showWork",
    params(("lease_id" = String, Path, description = "Lease id, as returned in `lease.id`")),
    responses((status = 200, description = "Work lease, active or ended", body = tenure_api::WorkResponse)),
    extensions(("x-codes" = json!(["NOT_FOUND", "NO_AUTHORITY"])))
)]
async fn show(State(app): State<Arc<App>>, caller: Caller, id: LeaseId) -> Result<Response, HttpError> {
    let fence = fence_of_lease_id(&app, &caller, &id)?;
    let now = app.registrar.now();
    let found = app.registrar.read(|state| Some((find(state, fence, now)?, work_of(state, fence))));
    let (lease, work) = found.ok_or_else(not_found)?;
    Ok(json(StatusCode::OK, &WorkResponse { lease, work: work.ok_or_else(not_a_work_lease)? }))
}

/// What a lease allows, dead or alive; nothing for a lease that has no authority.
fn work_of(state: &kernel::KernelState, fence: Fence) -> Option<WorkView> {
    let ended = state.ended_lease(fence);
    let live = state.lease(fence).and_then(|lease| Some((lease.resource, lease.work?)));
    let (resource, work) = live.or_else(|| Some((&ended?.resource, ended?.work_lease.as_deref()?)))?;
    let id = |fence: &Fence| state.ledger_tag().lease_id(*fence);
    Some(WorkView {
        work_id: work_id_of(resource)?.to_owned(),
        scope: scope_of(&work.authority.scope),
        budget: budget_view(work.authority.budget),
        spent: budget_view(work.spent),
        given: budget_view(work.delegated),
        remaining: budget_view(work.remaining),
        exhausted: work.remaining.is_exhausted(),
        parent: work.authority.parent.as_ref().map(id),
        children: work.children.iter().map(id).collect(),
    })
}

fn scope_of(scope: &LeaseScope) -> Option<tenure_api::WorkScope> {
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    let [work_ids, tools, namespaces] = scope.names()?.map(owned);
    Some(tenure_api::WorkScope { work_ids, tools, namespaces })
}
