//! Reports of an agent: its state, and the resources that it touched.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{
    AgentStateReport, AgentView, Code, DigestIdentity, PendingIntent, ResourceAccess, ResourceTouchReport,
    StateDigest, TouchResult,
};
use tenure_core::kernel;
use tenure_core::kernel::{
    AgentCommand, AgentOutcome, AgentPhase, AgentReport, Holder, LeaseMode, ReportedAgentState, Resource,
    Tick,
};
use tenure_core::rules::is_expired;
use tenure_core::rules::overlap::ResourcePattern;

use super::manifest::ParsedManifestIntent;
use super::{list, manifest, parse, submit, view};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::body::{MAX_MANIFEST_BYTES, RequestBody, check_count};
use crate::http::response::{HttpError, json, no_such_agent, unexpected};
use crate::tokens::TokenScope;

/// The one version of a digest.
const VERSION: &str = "1.0";

/// Report the state of an agent.
///
/// `DIE_RESTART` extends each lease of the agent by 15 s, once. `COMPLETED` and `ABORTED` end its attempt:
/// they withdraw its wait and release its leases. A digest is what the agent remembers after a restart. It
/// restores no leases; `/v1/leases/reconcile` returns their state.
#[utoipa::path(
    post,
    path = "/v1/agents/{id}/state",
    tag = "agents",
    operation_id = "report",
    params(("id" = String, Path, description = "Agent id, as in `agent_id`")),
    request_body = tenure_api::AgentStateReport,
    responses((status = 200, description = "State of the agent", body = AgentView)),
    extensions(("x-codes" = json!(["HOLDER_TAKEN", "NOT_FOUND", "PRIORITY_FIXED", "DIGEST_STALE"])))
)]
pub(super) async fn report(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
    body: RequestBody<AgentStateReport, MAX_MANIFEST_BYTES>,
) -> Result<Response, HttpError> {
    let Path(id) = path.map_err(|_| no_such_agent())?;
    let agent = parse::parse_agent_id(&id)?;
    let (report, intents) = parse_report(body.request, &caller, agent.clone())?;
    intents.iter().try_for_each(|intent| caller.require_resource(intent.resource.as_str()))?;
    caller.require(crate::tokens::TokenScope::LeasesWrite)?;
    let (answer, stamp) = submit(&app, &caller, AgentCommand::Report(report)).await?;
    let AgentOutcome::Acknowledged = answer else { return Err(unexpected()) };
    let pending = app.registrar.read(|state| {
        let merged = manifest::merge(&intents).into_iter();
        merged.map(|(resource, mode)| stands(state, &agent, &resource, mode, stamp)).collect()
    });
    let view = AgentView { pending, ..list::find(&app, &caller, &id)? };
    Ok(json(StatusCode::OK, &view))
}

fn parse_report(
    report: AgentStateReport,
    caller: &Caller,
    agent: Holder,
) -> Result<(AgentReport, Vec<ParsedManifestIntent>), HttpError> {
    parse::check_id("session_id", &report.session_id)?;
    let phase = phase("state", &report.state)?;
    let digest = report.digest.as_ref();
    let digest =
        digest.map(|digest| parse_digest(digest, &agent).map_err(|failure| failure.in_field("digest")));
    let (memory, intents) = digest.transpose()?.unzip();
    let principal = caller.principal.clone();
    let report = AgentReport { agent, principal, session: report.session_id.into(), phase, memory };
    Ok((report, intents.unwrap_or_default()))
}

fn phase(field: &str, name: &str) -> Result<AgentPhase, HttpError> {
    AgentPhase::parse(name).ok_or_else(|| {
        let names = AgentPhase::ALL.map(AgentPhase::as_str).join(", ");
        HttpError::invalid(field, &format!("must be one of {names}"))
    })
}

fn parse_digest(
    digest: &StateDigest,
    agent: &Holder,
) -> Result<(ReportedAgentState, Vec<ParsedManifestIntent>), HttpError> {
    if digest.version != VERSION {
        return Err(HttpError::invalid("version", "must be `1.0`"));
    }
    let DigestIdentity { agent_id, priority_timestamp: priority, epoch } = &digest.identity;
    if parse::parse_agent_id(agent_id)? != *agent {
        return Err(HttpError::invalid("identity.agent_id", "must be the agent in the address"));
    }
    let recovery = &digest.recovery;
    phase("recovery.last_phase", &recovery.last_phase)?;
    let intents = manifest::parse_intents("recovery.pending_intents", &recovery.pending_intents, None)?;
    Ok((ReportedAgentState { priority: *priority, epoch: *epoch }, intents))
}

/// How it stands now with something that an agent remembers to have wanted.
fn stands(
    state: &kernel::KernelState,
    agent: &Holder,
    resource: &Resource,
    mode: LeaseMode,
    now: Tick,
) -> PendingIntent {
    let reach = ResourcePattern::from_name(resource.as_str());
    let mut own = state.leases_of_holder(agent).filter(|lease| !is_expired(now.0, lease.terms.expires_at.0));
    let is_held = own.any(|lease| {
        lease.terms.mode.covers(mode) && ResourcePattern::from_name(lease.resource.as_str()).covers(reach)
    });
    let mut conflicting = view::conflicting_leases(state, resource, mode, now);
    let now = match () {
        () if is_held => "HELD",
        () if conflicting.any(|lease| lease.holder != agent) => "BLOCKED",
        () => "FREE",
    };
    PendingIntent {
        resource: resource.as_str().to_owned(),
        predicate: mode.as_str().to_owned(),
        now: now.to_owned(),
    }
}

/// The most things that are touched at once.
const MAX_TOUCHED: usize = 1_024;

/// Report resources that an agent touched.
///
/// Resources outside its leases are returned in the error and recorded once per attempt. The others count as
/// use of a lease.
#[utoipa::path(
    post,
    path = "/v1/agents/{id}/touch",
    tag = "agents",
    operation_id = "touch",
    params(("id" = String, Path, description = "Agent id, as in `agent_id`")),
    request_body = tenure_api::ResourceTouchReport,
    responses((status = 200, description = "All resources are leased", body = TouchResult)),
    extensions(("x-codes" = json!(["HOLDER_TAKEN", "NOT_FOUND", "SCOPE_VIOLATION"])))
)]
pub(super) async fn touch(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
    body: RequestBody<ResourceTouchReport, MAX_MANIFEST_BYTES>,
) -> Result<Response, HttpError> {
    let Path(id) = path.map_err(|_| no_such_agent())?;
    let agent = parse::parse_agent_id(&id)?;
    let resources = &body.request.resources;
    check_count("resources", resources.len(), MAX_TOUCHED)?;
    let in_place = |(index, access)| {
        parse_access(access).map_err(|failure| failure.in_field(&format!("resources[{index}]")))
    };
    let touched: Vec<_> = resources.iter().enumerate().map(in_place).collect::<Result<_, _>>()?;
    if touched.is_empty() {
        return Err(HttpError::invalid("resources", "is empty; name at least one thing"));
    }
    caller.require(TokenScope::LeasesWrite)?;
    let (within, principal) = (touched.len(), caller.principal.clone());
    let (answer, _) = submit(&app, &caller, AgentCommand::Touch { agent, principal, touched }).await?;
    let AgentOutcome::Touched { outside } = answer else { return Err(unexpected()) };
    if outside.is_empty() {
        return Ok(json(StatusCode::OK, &TouchResult { within }));
    }
    let detail = format!(
        "the agent has no lease for {} of the {within} things that it touches, as `outside` says; stop, put back what was \
         changed there, and send a manifest that names them before touching them again",
        outside.len()
    );
    let mut failure = HttpError::new(Code::ScopeViolation, detail);
    failure.0.outside =
        Some(outside.iter().map(|(resource, mode)| view::resource_access(resource, *mode)).collect());
    Err(failure)
}

fn parse_access(access: &ResourceAccess) -> Result<(Resource, LeaseMode), HttpError> {
    let resource = parse::parse_resource_name("resource", &access.resource)?;
    Ok((resource, parse::parse_lease_mode(&access.predicate)?))
}
