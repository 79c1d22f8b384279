//! Reports of an agent: its state, and the resources that it touched.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{AgentView, Code, PendingIntent, Touched};
use tenure_core::kernel;
use tenure_core::kernel::{
    AgentAnswer, AgentCommand, Holder, Mode, Phase, Remembered, Report, Resource, Tick,
};
use tenure_core::rules::overlap::Reach;
use tenure_core::rules::time::is_over;

use super::intents::Intent;
use super::{ask, intents, list, names, view};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::ManifestBody;
use crate::http::fields::Fields;
use crate::http::refusal::{no_such_agent, unexpected};
use crate::tokens::Scope;

/// The one version of a digest.
const VERSION: &str = "1.0";

/// Say what an agent does.
///
/// `DIE_RESTART` gives each of its leases 15 s more, once. `COMPLETED` and `ABORTED` end its attempt: it waits for nothing and
/// has nothing any more. A digest is what the agent remembers from before its process restarted; what it holds is not what it
/// remembers, and `/v1/leases/reconcile` says what is true.
#[utoipa::path(
    post,
    path = "/v1/agents/{id}/state",
    tag = "agents",
    operation_id = "report",
    params(("id" = String, Path, description = "The agent, as `agent_id` names it")),
    request_body = tenure_api::ReportState,
    responses((status = 200, description = "How the agent stands", body = AgentView)),
    extensions(("x-codes" = json!(["HOLDER_TAKEN", "NOT_FOUND", "PRIORITY_FIXED", "DIGEST_STALE"])))
)]
pub(super) async fn report(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
    ManifestBody(fields): ManifestBody,
) -> Result<Response, Failure> {
    let Path(id) = path.map_err(|_| no_such_agent())?;
    let agent = names::agent_named(&id)?;
    let (report, intents) = read(fields, &caller, agent.clone())?;
    intents.iter().try_for_each(|intent| caller.require_resource(intent.resource.as_str()))?;
    caller.require(crate::tokens::Scope::LeasesWrite)?;
    let (answer, stamp) = ask(&app, &caller, AgentCommand::Report(report)).await?;
    let AgentAnswer::Noted = answer else { return Err(unexpected()) };
    let pending = app.registrar.read(|state| {
        let merged = intents::merge(&intents).into_iter();
        merged.map(|(resource, mode)| stands(state, &agent, &resource, mode, stamp)).collect()
    });
    let view = AgentView { pending, ..list::find(&app, &caller, &id)? };
    Ok(json(StatusCode::OK, &view))
}

fn read(mut fields: Fields, caller: &Caller, agent: Holder) -> Result<(Report, Vec<Intent>), Failure> {
    let session = names::session(&mut fields)?;
    let phase = phase("state", &fields.text("state")?)?;
    let digest = fields.optional_fields("digest")?;
    fields.finish()?;
    let digest = digest.map(|fields| digest_of(fields, &agent).map_err(|failure| failure.within("digest")));
    let (remembers, intents) = digest.transpose()?.unzip();
    let principal = caller.principal.clone();
    let report = Report { agent, principal, session: session.into(), phase, remembers };
    Ok((report, intents.unwrap_or_default()))
}

fn phase(field: &str, name: &str) -> Result<Phase, Failure> {
    Phase::parse(name).ok_or_else(|| {
        let names = Phase::ALL.map(Phase::as_str).join(", ");
        Failure::invalid(field, &format!("must be one of {names}"))
    })
}

fn digest_of(mut fields: Fields, agent: &Holder) -> Result<(Remembered, Vec<Intent>), Failure> {
    if fields.text("version")? != VERSION {
        return Err(Failure::invalid("version", "must be `1.0`"));
    }
    let remembered = fields.within("identity", |mut fields| {
        if names::agent(&mut fields)? != *agent {
            return Err(Failure::invalid("agent_id", "must be the agent in the address"));
        }
        let priority = fields.number("priority_timestamp")?;
        let epoch = fields.number("epoch")?;
        fields.finish()?;
        Ok(Remembered { priority, epoch })
    })?;
    let intents = fields.within("recovery", |mut fields| {
        phase("last_phase", &fields.text("last_phase")?)?;
        let intents = intents::list(&mut fields, "pending_intents", None)?;
        fields.finish()?;
        Ok(intents)
    })?;
    fields.finish()?;
    Ok((remembered, intents))
}

/// How it stands now with something that an agent remembers to have wanted.
fn stands(
    state: &kernel::State,
    agent: &Holder,
    resource: &Resource,
    mode: Mode,
    now: Tick,
) -> PendingIntent {
    let reach = Reach::of(resource.as_str());
    let mut own = state.leases_of_holder(agent).filter(|lease| !is_over(now.0, lease.terms.expires_at.0));
    let is_held =
        own.any(|lease| lease.terms.mode.covers(mode) && Reach::of(lease.resource.as_str()).covers(reach));
    let mut apart = view::holders_apart(state, resource, mode, now);
    let now = match () {
        () if is_held => "HELD",
        () if apart.any(|lease| lease.holder != agent) => "BLOCKED",
        () => "FREE",
    };
    PendingIntent {
        resource: resource.as_str().to_owned(),
        predicate: mode.as_str().to_owned(),
        now: now.to_owned(),
    }
}

/// The most things that are touched at once.
const MOST: usize = 1_024;

/// Say what an agent touches, or was seen to touch.
///
/// What is beyond its leases is named in the answer, and recorded once in an attempt. What is within shows that a lease is used.
#[utoipa::path(
    post,
    path = "/v1/agents/{id}/touch",
    tag = "agents",
    operation_id = "touch",
    params(("id" = String, Path, description = "The agent, as `agent_id` names it")),
    request_body = tenure_api::Touch,
    responses((status = 200, description = "All of it is within", body = Touched)),
    extensions(("x-codes" = json!(["HOLDER_TAKEN", "NOT_FOUND", "SCOPE_VIOLATION"])))
)]
pub(super) async fn touch(
    State(app): State<Arc<App>>,
    caller: Caller,
    path: Result<Path<String>, PathRejection>,
    ManifestBody(mut fields): ManifestBody,
) -> Result<Response, Failure> {
    let Path(id) = path.map_err(|_| no_such_agent())?;
    let agent = names::agent_named(&id)?;
    let touched = fields.each("resources", MOST, one)?;
    fields.finish()?;
    if touched.is_empty() {
        return Err(Failure::invalid("resources", "is empty; name at least one thing"));
    }
    caller.require(Scope::LeasesWrite)?;
    let (within, principal) = (touched.len(), caller.principal.clone());
    let (answer, _) = ask(&app, &caller, AgentCommand::Touch { agent, principal, touched }).await?;
    let AgentAnswer::Touched { outside } = answer else { return Err(unexpected()) };
    if outside.is_empty() {
        return Ok(json(StatusCode::OK, &Touched { within }));
    }
    let detail = format!(
        "the agent has no lease for {} of the {within} things that it touches, as `outside` says; stop, put back what was \
         changed there, and send a manifest that names them before touching them again",
        outside.len()
    );
    let mut failure = Failure::new(Code::ScopeViolation, detail);
    failure.0.outside = Some(outside.iter().map(|(resource, mode)| view::wanted(resource, *mode)).collect());
    Err(failure)
}

fn one(mut fields: Fields) -> Result<(Resource, Mode), Failure> {
    let resource = names::resource_named("resource", &fields.text("resource")?)?;
    let mode = names::predicate(&mut fields)?;
    fields.finish()?;
    Ok((resource, mode))
}
