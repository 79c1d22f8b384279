//! Fields of the events of intents, work, agents and files.

use serde_json::{Value, json};
use tenure_core::authority::{Authority, Budget};
use tenure_core::kernel::{
    AgentEvent, FileEvent, FileOwner, Holder, IntentAcceptance, IntentEvent, IntentTarget, LeaseMode,
    LedgerTag, Resource, Tick, WorkEvent,
};

use super::fields::request_key_fields;

pub(super) fn intent_fields(event: &IntentEvent) -> Value {
    let mut session = json!({ "session_id": event.session().as_str(), "state": event.next_state().as_str() });
    let mut put = |name: &str, value: Value| session[name] = value;
    match event {
        IntentEvent::Accepted(accepted) => put_accepted(accepted, put),
        IntentEvent::Starting { worker, leader: guard, slot, .. } => {
            put("worker", worker.as_str().into());
            put("guard", guard.0.into());
            put("slot", (*slot).into());
        }
        IntentEvent::Running { process, .. } => put("process", (&**process).into()),
        IntentEvent::Stopping { by, .. } => put("by", by.as_str().into()),
        IntentEvent::Ended { end, detail, .. } => {
            put("reason", end.reason().into());
            put("outcome", end.outcome().into());
            put("detail", (&**detail).into());
        }
    }
    json!({ "session": session })
}

fn put_accepted(accepted: &IntentAcceptance, mut put: impl FnMut(&str, Value)) {
    match &accepted.intent.target {
        IntentTarget::Service(service) => put("serviceRef", (&**service).into()),
        IntentTarget::Recording { id, start_ms } => {
            put("recordingID", (&**id).into());
            put("startMs", (*start_ms).into());
        }
    }
    put("profileID", (&*accepted.intent.profile).into());
    if !accepted.intent.params.is_empty() {
        put("params", serde_json::from_str(&accepted.intent.params).unwrap_or(Value::Null));
    }
    put("correlationId", (&*accepted.intent.correlation).into());
    put("principal", accepted.principal.as_str().into());
    // Of what is wanted, under a secret: it gives nothing away.
    put("idempotencyKey", hex::encode(accepted.key.0).into());
    put("startByTick", accepted.start_by.0.into());
}

pub(super) fn work_fields(event: &WorkEvent, tag: LedgerTag) -> Value {
    match event {
        WorkEvent::Spent { lease, amount, purpose, key, .. } => {
            let mut spent = json!({
                "lease": { "id": tag.lease_id(*lease), "fence": lease.0 },
                "spent": amounts(*amount),
            });
            if !purpose.is_empty() {
                spent["for"] = json!({
                    "workId": purpose.work_id.as_deref(),
                    "tool": purpose.tool.as_deref(),
                    "namespace": purpose.namespace.as_deref(),
                });
            }
            if let Some(key) = key {
                spent["idempotency"] = request_key_fields(key);
            }
            spent
        }
    }
}

/// What a lease was given when it began.
pub fn work_authority_fields(authority: &Authority, tag: LedgerTag) -> Value {
    let names = authority.scope.names();
    let scope = names.map(|[work_ids, tools, namespaces]| {
        json!({ "workIds": work_ids, "tools": tools, "namespaces": namespaces })
    });
    json!({
        "parent": authority.parent.map(|parent| tag.lease_id(parent)),
        "scope": scope,
        "budget": amounts(authority.budget),
    })
}

fn amounts(budget: Budget) -> Value {
    let Budget { episodes, tool_calls, tokens, duration_ms } = budget;
    json!({ "episodes": episodes, "toolCalls": tool_calls, "tokens": tokens, "durationMs": duration_ms })
}

pub(super) fn agent_fields(event: &AgentEvent, tag: LedgerTag, time: impl Fn(Tick) -> String) -> Value {
    match event {
        AgentEvent::Began { rank, principal, session, .. } => json!({ "agent": {
            "agent_id": rank.agent.as_str(),
            "priority_timestamp": rank.priority,
            "session_id": &**session,
            "principal": principal.as_str(),
        }}),
        AgentEvent::Waits(pending) => {
            let requested: Vec<_> =
                pending.requests.iter().map(|request| touch(&request.resource, request.mode)).collect();
            json!({
                "agent": { "agent_id": pending.rank.agent.as_str(), "priority_timestamp": pending.rank.priority },
                "wait": {
                    "ticket": pending.ticket.0,
                    "wants": requested,
                    "untilTick": pending.until.0,
                    "until": time(pending.until),
                },
            })
        }
        AgentEvent::Left { ticket, end, .. } => {
            json!({ "wait": { "ticket": ticket.0, "end": end.as_str() } })
        }
        AgentEvent::Died { agent, retry_at, .. } => json!({ "agent": {
            "agent_id": agent.as_str(),
            "retryTick": retry_at.0,
            "retryAt": time(*retry_at),
        }}),
        AgentEvent::Reported { agent, principal, session, phase, epoch, .. } => json!({ "agent": {
            "agent_id": agent.as_str(),
            "session_id": &**session,
            "principal": principal.as_str(),
            "state": phase.as_str(),
            "epoch": epoch,
        }}),
        AgentEvent::Touched { agent, leases, .. } => {
            let leases: Vec<_> = leases.iter().map(|fence| tag.lease_id(*fence)).collect();
            json!({ "agent": { "agent_id": agent.as_str() }, "leases": leases })
        }
        AgentEvent::Strayed { agent, outside, .. } => {
            let outside: Vec<_> = outside.iter().map(|(resource, mode)| touch(resource, *mode)).collect();
            json!({ "agent": { "agent_id": agent.as_str() }, "outside": outside })
        }
        AgentEvent::UsedUp { agent, used, .. } => {
            json!({ "agent": { "agent_id": agent.as_str(), "heldMs": used.as_millis() } })
        }
    }
}

fn touch(resource: &Resource, mode: LeaseMode) -> Value {
    json!({ "resource": resource.as_str(), "predicate": mode.as_str() })
}

pub(super) fn file_fields(event: &FileEvent, time: impl Fn(Tick) -> String) -> Value {
    let name = |holder: &Option<Holder>| holder.as_ref().map(|holder| holder.as_str().to_owned());
    match event {
        FileEvent::Began { session, .. } => json!({ "file": {
            "id": session.id.as_str(),
            "parent": name(&session.parent),
            "agent": &*session.agent,
            "session": &*session.session,
            "process": session.process.to_string(),
            "task": session.task.as_deref(),
        }}),
        FileEvent::Seen { session, task, .. } => {
            json!({ "file": { "id": session.as_str(), "task": task.as_deref() } })
        }
        FileEvent::TurnEnded { session, .. } => json!({ "file": { "id": session.as_str() } }),
        FileEvent::Contended(contended) => json!({ "file": {
            "ticket": contended.ticket.0,
            "id": contended.session.as_str(),
            "resource": contended.request.resource.as_str(),
            "owner": contended.owner.as_str(),
            "retryTick": contended.retry_at.0,
            "retryAt": time(contended.retry_at),
            "circle": names(&contended.cycle),
        }}),
        FileEvent::Blocked { ticket, report: found } => json!({ "file": {
            "ticket": ticket.0,
            "owner": of_owner(&found.owner),
            "heldSince": time(found.held_since),
            "lastHeartbeatAt": time(found.seen_at),
            "circle": names(&found.cycle),
            "state": "waiting_for_instruction",
        }}),
        FileEvent::Closed { ticket, end, .. } => {
            json!({ "file": { "ticket": ticket.0, "end": end.as_str() } })
        }
        FileEvent::Ended { session, end, detail, .. } => json!({ "file": {
            "id": session.as_str(),
            "end": end.as_str(),
            "detail": &**detail,
        }}),
        FileEvent::Violated { resource, owner, session, detail, .. } => json!({ "file": {
            "resource": resource.as_str(),
            "owner": name(owner),
            "id": name(session),
            "detail": &**detail,
        }}),
    }
}

fn of_owner(owner: &FileOwner) -> Value {
    json!({
        "id": owner.holder.as_str(),
        "agent": &*owner.agent,
        "session": &*owner.session,
        "process": owner.process.to_string(),
        "task": &*owner.task,
    })
}

fn names(circle: &[Holder]) -> Vec<&str> {
    circle.iter().map(Holder::as_str).collect()
}
