//! Reports of an agent: its state, and the resources that it touched.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{AgentView, Code, PendingIntent, TouchResult};
use tenure_core::kernel;
use tenure_core::kernel::{
    AgentCommand, AgentOutcome, AgentPhase, AgentReport, Holder, LeaseMode, ReportedAgentState, Resource,
    Tick,
};
use tenure_core::rules::is_expired;
use tenure_core::rules::overlap::ResourcePattern;

use super::manifest::ManifestIntent;
use super::{list, manifest, parse, submit, view};
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::body::ManifestBody;
use crate::http::fields::Fields;
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
    ManifestBody(fields): ManifestBody,
) -> Result<Response, HttpError> {
    let Path(id) = path.map_err(|_| no_such_agent())?;
    let agent = parse::parse_agent_id(&id)?;
    let (report, intents) = read(fields, &caller, agent.clone())?;
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

fn read(
    mut fields: Fields,
    caller: &Caller,
    agent: Holder,
) -> Result<(AgentReport, Vec<ManifestIntent>), HttpError> {
    let session = parse::session_id(&mut fields)?;
    let phase = phase("state", &fields.text("state")?)?;
    let digest = fields.optional_fields("digest")?;
    fields.reject_remaining()?;
    let digest = digest.map(|fields| digest_of(fields, &agent).map_err(|failure| failure.in_field("digest")));
    let (remembers, intents) = digest.transpose()?.unzip();
    let principal = caller.principal.clone();
    let report = AgentReport { agent, principal, session: session.into(), phase, memory: remembers };
    Ok((report, intents.unwrap_or_default()))
}

fn phase(field: &str, name: &str) -> Result<AgentPhase, HttpError> {
    AgentPhase::parse(name).ok_or_else(|| {
        let names = AgentPhase::ALL.map(AgentPhase::as_str).join(", ");
        HttpError::invalid(field, &format!("must be one of {names}"))
    })
}

fn digest_of(
    mut fields: Fields,
    agent: &Holder,
) -> Result<(ReportedAgentState, Vec<ManifestIntent>), HttpError> {
    if fields.text("version")? != VERSION {
        return Err(HttpError::invalid("version", "must be `1.0`"));
    }
    let remembered = fields.read_object("identity", |mut fields| {
        if parse::agent(&mut fields)? != *agent {
            return Err(HttpError::invalid("agent_id", "must be the agent in the address"));
        }
        let priority = fields.number("priority_timestamp")?;
        let epoch = fields.number("epoch")?;
        fields.reject_remaining()?;
        Ok(ReportedAgentState { priority, epoch })
    })?;
    let intents = fields.read_object("recovery", |mut fields| {
        phase("last_phase", &fields.text("last_phase")?)?;
        let intents = manifest::parse(&mut fields, "pending_intents", None)?;
        fields.reject_remaining()?;
        Ok(intents)
    })?;
    fields.reject_remaining()?;
    Ok((remembered, intents))
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
    ManifestBody(mut fields): ManifestBody,
) -> Result<Response, HttpError> {
    let Path(id) = path.map_err(|_| no_such_agent())?;
    let agent = parse::parse_agent_id(&id)?;
    let touched = fields.each("resources", MAX_TOUCHED, one)?;
    fields.reject_remaining()?;
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

fn one(mut fields: Fields) -> Result<(Resource, LeaseMode), HttpError> {
    let resource = parse::parse_resource_name("resource", &fields.text("resource")?)?;
    let mode = parse::parse_lease_mode(&mut fields)?;
    fields.reject_remaining()?;
    Ok((resource, mode))
}
