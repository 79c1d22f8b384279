//! `POST /v1/manifest`: everything that an agent is about to touch, or nothing of it.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tenure_api::{Code, Manifest, ManifestIntent, ManifestVerdict, Problem};
use tenure_core::kernel::{
    AgentCommand, AgentOutcome, DeclareManifest, Fence, Holder, LeaseMode, LeaseRequest, ModeSet, Resource,
    Tick, TickDuration,
};

use super::{AgentSettings, parse, submit, view};
use crate::app::{App, tick_to_rfc3339};
use crate::explain::denial_log::RequestSummary;
use crate::http::auth::Caller;
use crate::http::body::{MAX_MANIFEST_BYTES, RequestBody, check_count};
use crate::http::response::{HttpError, json, unexpected};
use crate::leases::nonce;

/// Declare everything that an agent is about to touch.
///
/// Grants all leases of the manifest or none. An agent blocked only by younger agents waits; the response
/// says so at once. Others must retry later with the same priority. Repeating the manifest returns the
/// outcome of a wait.
#[utoipa::path(
    post,
    path = "/v1/manifest",
    tag = "agents",
    operation_id = "declare",
    request_body = tenure_api::Manifest,
    responses((status = 200, description = "Verdict on the manifest", body = ManifestVerdict)),
    extensions(("x-codes" = json!([
        "TTL_OUT_OF_RANGE", "HOLDER_TAKEN", "PRIORITY_FIXED", "QUEUE_FULL", "QUOTA_EXCEEDED", "LEASE_TIME_USED"
    ])))
)]
pub(super) async fn declare(
    State(app): State<Arc<App>>,
    caller: Caller,
    body: RequestBody<Manifest, MAX_MANIFEST_BYTES>,
) -> Result<Response, HttpError> {
    let declare = parse_manifest(body.request, &caller, &app.agents)?;
    declare.requests.iter().try_for_each(|request| caller.require_resource(request.resource.as_str()))?;
    let (summary, rank) =
        (RequestSummary::from_manifest(&declare), (declare.agent.clone(), declare.priority));
    let decided = submit(&app, &caller, AgentCommand::Declare(declare)).await;
    let shown = decided.and_then(|(answer, stamp)| Ok((manifest_verdict(&app, rank, answer, stamp)?, stamp)));
    match &shown {
        Ok((ManifestVerdict::Die { blocked_by, retry_after_ms, .. }, stamp)) => {
            let detail = format!(
                "the verdict was DIE: {} is in the way, and the agent may come back after {retry_after_ms} ms",
                blocked_by.join(", ")
            );
            app.denials.record(summary, &Problem::new(Code::Held, detail), *stamp);
        }
        // What a token may not do says nothing about the resource.
        Err(failure) if !matches!(failure.0.code, Code::Forbidden | Code::Unauthorized) => {
            app.denials.record(summary, &failure.0, app.registrar.now());
        }
        _ => {}
    }
    Ok(json(StatusCode::OK, &shown?.0))
}

fn parse_manifest(
    manifest: Manifest,
    caller: &Caller,
    settings: &AgentSettings,
) -> Result<DeclareManifest, HttpError> {
    let session = manifest.session_id;
    parse::check_id("session_id", &session)?;
    let agent = parse::parse_agent_id(&manifest.agent_id)?;
    let ttl = ttl(manifest.ttl, settings)?;
    let wait_timeout = wait_timeout(manifest.wait_timeout_ms, settings)?;
    let intents = parse_intents("intents", &manifest.intents, Some(&session))?;
    if intents.is_empty() {
        return Err(HttpError::invalid("intents", "is empty; name at least one thing"));
    }
    let first = || intents.iter().filter_map(|intent| intent.timestamp).min();
    let priority = manifest.priority_timestamp.or_else(first).ok_or_else(|| {
        let reason = "is missing, and no intent has a timestamp; say when the attempt began, in milliseconds";
        HttpError::invalid("priority_timestamp", reason)
    })?;
    let requests = lease_requests(merge(&intents), ttl)?;
    let principal = caller.principal.clone();
    Ok(DeclareManifest { agent, principal, session: session.into(), priority, requests, wait_timeout })
}

/// What is too short is refused: whoever counts on less than it gets would be too late. What is too long is cut, as the answer
/// says.
fn ttl(requested: Option<u64>, settings: &AgentSettings) -> Result<TickDuration, HttpError> {
    let requested = requested.unwrap_or(settings.ttl_ms);
    if requested < AgentSettings::MIN_TTL_MS {
        let detail = format!(
            "ttl: a lease of an agent lasts at least {} ms; {requested} ms were asked for",
            AgentSettings::MIN_TTL_MS
        );
        return Err(HttpError::new(Code::TtlOutOfRange, detail));
    }
    Ok(TickDuration::from_millis(requested.min(settings.max_ttl_ms)))
}

fn wait_timeout(requested: Option<u64>, settings: &AgentSettings) -> Result<TickDuration, HttpError> {
    match requested {
        Some(0) => {
            Err(HttpError::invalid("waitTimeoutMs", "must be at least 1; leave it out for the usual time"))
        }
        wait_ms => {
            Ok(TickDuration::from_millis(wait_ms.unwrap_or(settings.wait_ms).min(settings.max_wait_ms)))
        }
    }
}

fn manifest_verdict(
    app: &App,
    rank: (Holder, u64),
    answer: AgentOutcome,
    stamp: Tick,
) -> Result<ManifestVerdict, HttpError> {
    let (_, priority_timestamp) = rank;
    app.registrar.read(|state| {
        let ids =
            |leases: Vec<Fence>| leases.into_iter().map(|fence| state.ledger_tag().lease_id(fence)).collect();
        Ok(match answer {
            AgentOutcome::Granted { leases } => {
                let leases = leases.into_iter().map(|fence| view::lease(state, fence, stamp));
                ManifestVerdict::Granted { leases: leases.collect::<Option<_>>().ok_or_else(unexpected)? }
            }
            AgentOutcome::Wait { position, until, blocked_by, .. } => ManifestVerdict::Wait {
                wait_timeout_ms: until.since(stamp).as_millis(),
                wait_until: tick_to_rfc3339(state, until),
                position,
                blocked_by: view::holder_names(&blocked_by),
            },
            AgentOutcome::Die { retry_at, blocked_by, ended } => ManifestVerdict::Die {
                // Who comes a moment too early is told the same again: so the time is not cut short.
                retry_after_ms: retry_at.since(stamp).0.div_ceil(1_000),
                priority_timestamp,
                blocked_by: view::holder_names(&blocked_by),
                ended: ids(ended),
            },
            _ => return Err(unexpected()),
        })
    })
}

/// The most intents in one list.
pub(super) const MAX_INTENTS: usize = 256;
/// The longest remark, in bytes.
const MAX_SUBJECT_BYTES: usize = 4_096;

/// One thing that an agent wants.
#[derive(Debug, PartialEq)]
pub(super) struct ParsedManifestIntent {
    pub(super) resource: Resource,
    pub(super) mode: LeaseMode,
    /// When it was intended, in milliseconds, as the agent says.
    pub(super) timestamp: Option<u64>,
}

/// Parses the intents of the field `name`. An intent that names a session must name `session`, if there is one.
pub(super) fn parse_intents(
    name: &str,
    intents: &[ManifestIntent],
    session: Option<&str>,
) -> Result<Vec<ParsedManifestIntent>, HttpError> {
    check_count(name, intents.len(), MAX_INTENTS)?;
    let in_place = |(index, intent)| {
        parse_intent(intent, session).map_err(|failure| failure.in_field(&format!("{name}[{index}]")))
    };
    intents.iter().enumerate().map(in_place).collect()
}

fn parse_intent(intent: &ManifestIntent, session: Option<&str>) -> Result<ParsedManifestIntent, HttpError> {
    let ignored = [("id", &intent.id, 256), ("subject", &intent.subject, MAX_SUBJECT_BYTES)];
    for (name, text, max_bytes) in ignored {
        text.as_ref().map_or(Ok(()), |text| parse::check_length(name, text, max_bytes))?;
    }
    let mode = parse::parse_lease_mode(&intent.predicate)?;
    let resource = parse::object(&intent.object).map_err(|failure| failure.in_field("object"))?;
    if intent.confidence.is_some_and(|confidence| !(0.0..=1.0).contains(&confidence)) {
        return Err(HttpError::invalid("confidence", "must be a number from 0 to 1"));
    }
    if let Some(own) = &intent.session_id {
        parse::check_id("session_id", own)?;
        if session.is_some_and(|session| session != own) {
            return Err(HttpError::invalid(
                "session_id",
                "must be the session_id of the manifest; leave it out",
            ));
        }
    }
    Ok(ParsedManifestIntent { resource, mode, timestamp: intent.timestamp })
}

/// Every resource once, in the order in which they are first named, in the strongest way in which one is named.
pub(super) fn merge(intents: &[ParsedManifestIntent]) -> Vec<(Resource, LeaseMode)> {
    let mut merged: Vec<(Resource, LeaseMode)> = Vec::new();
    let mut places = std::collections::BTreeMap::new();
    for intent in intents {
        let next = merged.len();
        let place = *places.entry(&intent.resource).or_insert(next);
        match merged.get_mut(place) {
            Some((_, mode)) => *mode = stronger(*mode, intent.mode),
            None => merged.push((intent.resource.clone(), intent.mode)),
        }
    }
    merged
}

/// The mode that keeps out what both keep out. Which of them was named first does not matter: the same things in another
/// order are the same manifest.
fn stronger(one: LeaseMode, other: LeaseMode) -> LeaseMode {
    let (first, second) = (one.min(other), one.max(other));
    let both = ModeSet::conflicting_with(first).union(ModeSet::conflicting_with(second));
    let covers = |mode: &LeaseMode| both.is_subset(ModeSet::conflicting_with(*mode));
    // Of the modes of agents, one always keeps out what the other does.
    [first, second].into_iter().find(covers).unwrap_or(LeaseMode::Mutates)
}

/// What the kernel is asked for.
pub(super) fn lease_requests(
    merged: Vec<(Resource, LeaseMode)>,
    ttl: TickDuration,
) -> Result<Vec<LeaseRequest>, HttpError> {
    merged.into_iter().map(|(resource, mode)| Ok(LeaseRequest::new(resource, mode, ttl, nonce()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stronger_of_two_modes_covers_both() {
        use LeaseMode::{Consumes, Deletes, DependsOn, Mutates, Provides, Renames};
        let pairs = [
            ((Provides, Consumes), Provides),
            ((Consumes, DependsOn), Consumes),
            ((DependsOn, Mutates), Mutates),
            ((Provides, Deletes), Deletes),
            ((Mutates, Deletes), Mutates),
            ((Deletes, Renames), Deletes),
        ];
        for ((one, other), expected) in pairs {
            assert_eq!(
                (stronger(one, other), stronger(other, one)),
                (expected, expected),
                "{one:?} {other:?}"
            );
        }
        let modes = || LeaseMode::ALL.into_iter().filter(|mode| mode.is_agent_mode());
        for (one, other) in modes().flat_map(|one| modes().map(move |other| (one, other))) {
            let stronger = stronger(one, other);
            assert!(stronger.covers(one) && stronger.covers(other), "{one:?} {other:?}");
        }
    }

    #[test]
    fn intents_on_the_same_resource_are_merged_into_the_stronger_mode() {
        let intent = |name: &str, mode| ParsedManifestIntent {
            resource: Resource::parse(name).unwrap(),
            mode,
            timestamp: None,
        };
        let merged = merge(&[
            intent("FILE:b", LeaseMode::Consumes),
            intent("FILE:a", LeaseMode::Provides),
            intent("FILE:b", LeaseMode::Mutates),
        ]);
        let names: Vec<_> = merged.iter().map(|(resource, mode)| (resource.as_str(), *mode)).collect();
        assert_eq!(names, [("FILE:b", LeaseMode::Mutates), ("FILE:a", LeaseMode::Provides)]);
    }
}
