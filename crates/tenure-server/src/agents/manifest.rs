//! `POST /v1/manifest`: everything that an agent is about to touch, or nothing of it.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{Code, Problem, Verdict};
use tenure_core::kernel::{AgentAnswer, AgentCommand, Declare, Fence, Holder, Span, Tick};

use super::{AgentSettings, ask, intents, names, view};
use crate::app::App;
use crate::http::answer::{Failure, json};
use crate::http::auth::Caller;
use crate::http::body::ManifestBody;
use crate::http::fields::Fields;
use crate::http::names::time_of;
use crate::http::refusal::unexpected;
use crate::refusals::Wanted;

/// Say everything that an agent is about to touch.
///
/// All of it is granted, or nothing. An agent that is older than everybody in its way waits, and is answered at once that it
/// does; any other has to come back later, with the priority that it has. The same manifest sent again says how a wait went.
#[utoipa::path(
    post,
    path = "/v1/manifest",
    tag = "agents",
    operation_id = "declare",
    request_body = tenure_api::Manifest,
    responses((status = 200, description = "The verdict", body = Verdict)),
    extensions(("x-codes" = json!([
        "TTL_OUT_OF_RANGE", "HOLDER_TAKEN", "PRIORITY_FIXED", "QUEUE_FULL", "QUOTA_EXCEEDED", "LEASE_TIME_USED"
    ])))
)]
pub(super) async fn declare(
    State(app): State<Arc<App>>,
    caller: Caller,
    ManifestBody(fields): ManifestBody,
) -> Result<Response, Failure> {
    let declare = read(fields, &caller, &app.agents)?;
    declare.wants.iter().try_for_each(|want| caller.require_resource(want.resource.as_str()))?;
    let (wanted, rank) = (Wanted::by_agent(&declare), (declare.agent.clone(), declare.priority));
    let decided = ask(&app, &caller, AgentCommand::Declare(declare)).await;
    let shown = decided.and_then(|(answer, stamp)| Ok((shown(&app, rank, answer, stamp)?, stamp)));
    match &shown {
        Ok((Verdict::Die { blocked_by, retry_after_ms, .. }, stamp)) => {
            let detail = format!(
                "the verdict was DIE: {} is in the way, and the agent may come back after {retry_after_ms} ms",
                blocked_by.join(", ")
            );
            app.refusals.note(wanted, &Problem::new(Code::Held, detail), *stamp);
        }
        // What a token may not do says nothing about the resource.
        Err(failure) if !matches!(failure.0.code, Code::Forbidden | Code::Unauthorized) => {
            app.refusals.note(wanted, &failure.0, app.registrar.now());
        }
        _ => {}
    }
    Ok(json(StatusCode::OK, &shown?.0))
}

fn read(mut fields: Fields, caller: &Caller, settings: &AgentSettings) -> Result<Declare, Failure> {
    let session = names::session(&mut fields)?;
    let agent = names::agent(&mut fields)?;
    let ttl = ttl(&mut fields, settings)?;
    let priority = fields.optional_number("priority_timestamp")?;
    let patience = patience(&mut fields, settings)?;
    let intents = intents::list(&mut fields, "intents", Some(&session))?;
    fields.finish()?;
    if intents.is_empty() {
        return Err(Failure::invalid("intents", "is empty; name at least one thing"));
    }
    let first = || intents.iter().filter_map(|intent| intent.timestamp).min();
    let priority = priority.or_else(first).ok_or_else(|| {
        let reason = "is missing, and no intent has a timestamp; say when the attempt began, in milliseconds";
        Failure::invalid("priority_timestamp", reason)
    })?;
    let wants = intents::wants(intents::merge(&intents), ttl)?;
    let principal = caller.principal.clone();
    Ok(Declare { agent, principal, session: session.into(), priority, wants, patience })
}

/// What is too short is refused: whoever counts on less than it gets would be too late. What is too long is cut, as the answer
/// says.
fn ttl(fields: &mut Fields, settings: &AgentSettings) -> Result<Span, Failure> {
    let asked = fields.optional_number("ttl")?.unwrap_or(settings.ttl_ms);
    if asked < AgentSettings::SHORTEST_TTL_MS {
        let detail = format!(
            "ttl: a lease of an agent lasts at least {} ms; {asked} ms were asked for",
            AgentSettings::SHORTEST_TTL_MS
        );
        return Err(Failure::new(Code::TtlOutOfRange, detail));
    }
    Ok(Span::from_millis(asked.min(settings.longest_ttl_ms)))
}

fn patience(fields: &mut Fields, settings: &AgentSettings) -> Result<Span, Failure> {
    match fields.optional_number("waitTimeoutMs")? {
        Some(0) => {
            Err(Failure::invalid("waitTimeoutMs", "must be at least 1; leave it out for the usual time"))
        }
        asked => Ok(Span::from_millis(asked.unwrap_or(settings.wait_ms).min(settings.longest_wait_ms))),
    }
}

fn shown(app: &App, rank: (Holder, u64), answer: AgentAnswer, stamp: Tick) -> Result<Verdict, Failure> {
    let (_, priority_timestamp) = rank;
    app.registrar.read(|state| {
        let ids = |leases: Vec<Fence>| leases.into_iter().map(|fence| state.tag().lease_id(fence)).collect();
        Ok(match answer {
            AgentAnswer::Granted { leases } => {
                let leases = leases.into_iter().map(|fence| view::lease(state, fence, stamp));
                Verdict::Granted { leases: leases.collect::<Option<_>>().ok_or_else(unexpected)? }
            }
            AgentAnswer::Wait { position, until, blocked_by, .. } => Verdict::Wait {
                wait_timeout_ms: until.since(stamp).as_millis(),
                wait_until: time_of(state, until),
                position,
                blocked_by: view::names(&blocked_by),
            },
            AgentAnswer::Die { retry_at, blocked_by, ended } => Verdict::Die {
                // Who comes a moment too early is told the same again: so the time is not cut short.
                retry_after_ms: retry_at.since(stamp).0.div_ceil(1_000),
                priority_timestamp,
                blocked_by: view::names(&blocked_by),
                ended: ids(ended),
            },
            _ => return Err(unexpected()),
        })
    })
}
