//! `POST /v1/agents/{id}/touch`: whether what an agent touches is within what it has leases for.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{Code, Touched};
use tenure_core::kernel::{AgentAnswer, AgentCommand, Mode, Resource};

use super::{ask, names, view};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::ManifestBody;
use crate::http::fields::Fields;
use crate::http::refusal::{no_such_agent, unexpected};
use crate::tokens::Scope;

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
