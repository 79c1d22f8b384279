//! What an event says, for programs: every field that it has, but never what a token is made from.

use serde_json::{Map, Value, json};
use tenure_core::authority::{Authority, Budget};
use tenure_core::kernel::{
    AgentEvent, ClockReading, Event, FileEvent, FileOwner, Holder, IdempotencyKey, IntentAcceptance,
    IntentEvent, IntentTarget, IssuedLease, Labels, LeaseMode, LeaseRequest, LedgerTag, QueuedAcquire,
    Resource, Tick, WorkEvent,
};
use tenure_ledger::signing::KeyEntry;

use super::LogEntry;
use crate::output::{format_wall_time, tick_to_rfc3339};

type Fields = Map<String, Value>;

impl LogEntry<'_> {
    pub(super) fn fields(&self) -> Fields {
        let mut fields = Fields::new();
        fields.insert("seq".into(), self.seq.into());
        if let Some(event) = &self.event {
            fields.insert("tick".into(), event.occurred_at().0.into());
            fields.insert("at".into(), self.time().into());
        }
        fields.insert("type".into(), self.record.event_type.as_str().into());
        fields.insert("actor".into(), self.record.actor_id.as_str().into());
        if !self.record.session_id.is_empty() {
            fields.insert("session".into(), self.record.session_id.as_str().into());
        }
        let own = match (&self.event, &self.key) {
            (Some(event), _) => self.of_event(event),
            (None, Some(entry)) => json!({ "key": of_key(entry) }),
            (None, None) => json!({}),
        };
        if let Value::Object(own) = own {
            fields.extend(own);
        }
        fields
    }

    fn of_event(&self, event: &Event) -> Value {
        let id = |fence| self.tag.lease_id(fence);
        match event {
            Event::Issued(issued) => json!({ "lease": self.of_issued(issued) }),
            Event::Renewed { lease, expires_at, ttl, .. } => json!({ "lease": {
                "id": id(*lease),
                "fence": lease.0,
                "expiresTick": expires_at.0,
                "expiresAt": self.time_of(*expires_at),
                "ttlMs": ttl.as_millis(),
            }}),
            Event::Released { lease, by, reason, .. } => json!({
                "lease": { "id": id(*lease), "fence": lease.0, "holder": by.as_str() },
                "reason": reason.as_str(),
            }),
            Event::Expired { lease, .. } => json!({ "lease": { "id": id(*lease), "fence": lease.0 } }),
            Event::Revoked { lease, cause, by, detail, .. } => json!({
                "lease": { "id": id(*lease), "fence": lease.0 },
                "cause": cause.as_str(),
                "by": by.as_str(),
                "detail": &**detail,
            }),
            Event::Queued(queued) => json!({ "wait": self.of_queued(queued) }),
            Event::Left { ticket, end, .. } => {
                json!({ "wait": { "ticket": ticket.0, "end": end.as_str() } })
            }
            Event::Intent(event) => intent_fields(event),
            Event::Agent(event) => agent_fields(event, self.tag, |tick| self.time_of(tick)),
            Event::Work(event) => work_fields(event, self.tag),
            Event::File(event) => file_fields(event, |tick| self.time_of(tick)),
            Event::Marked { reading, .. } => json!({ "clock": of_reading(reading) }),
            Event::Resumed { reading, wall_anchor, wall_clock, .. } => json!({
                "clock": of_reading(reading),
                "wallAnchor": format_wall_time(*wall_anchor),
                "wallClock": format_wall_time(*wall_clock),
            }),
            Event::Restored { epoch, fence, hold_until, .. } => json!({
                "epoch": epoch,
                "fence": fence.0,
                "holdUntilTick": hold_until.0,
                "holdUntil": self.time_of(*hold_until),
            }),
        }
    }

    fn of_issued(&self, issued: &IssuedLease) -> Value {
        let mut lease = json!({
            "id": self.tag.lease_id(issued.fence),
            "fence": issued.fence.0,
            "resource": issued.resource.as_str(),
            "holder": issued.holder.as_str(),
            "principal": issued.principal.as_str(),
            "mode": issued.terms.mode.as_str(),
            "expiresTick": issued.terms.expires_at.0,
            "expiresAt": self.time_of(issued.terms.expires_at),
            "ttlMs": issued.terms.ttl.as_millis(),
            "labels": of_labels(&issued.terms.labels),
        });
        if let Some(authority) = &issued.authority {
            lease["authority"] = work_authority_fields(authority, self.tag);
        }
        if let Some(key) = &issued.key {
            lease["idempotency"] = request_key_fields(key);
        }
        if let Some(ticket) = issued.ticket {
            lease["ticket"] = ticket.0.into();
        }
        if let Some(continues) = issued.continues {
            lease["continues"] = self.tag.lease_id(continues).into();
        }
        lease
    }

    fn of_queued(&self, queued: &QueuedAcquire) -> Value {
        let request = |lease: &LeaseRequest| {
            let mut lease_json = json!({
                "resource": lease.resource.as_str(),
                "mode": lease.mode.as_str(),
                "ttlMs": lease.ttl.as_millis(),
                "labels": of_labels(&lease.labels),
            });
            if !lease.alternatives.is_empty() {
                lease_json["others"] = lease.alternatives.iter().map(Resource::as_str).collect();
            }
            lease_json
        };
        let requested: Vec<_> = queued.requests.iter().map(request).collect();
        let mut wait = json!({
            "ticket": queued.ticket.0,
            "holder": queued.holder.as_str(),
            "principal": queued.principal.as_str(),
            "wants": requested,
            "untilTick": queued.until.0,
            "until": self.time_of(queued.until),
        });
        if let Some(key) = &queued.key {
            wait["idempotency"] = request_key_fields(key);
        }
        wait
    }

    fn time_of(&self, tick: Tick) -> String {
        tick_to_rfc3339(self.anchor, tick)
    }
}

fn of_key(entry: &KeyEntry) -> Value {
    match entry {
        KeyEntry::Added(added) => json!({
            "id": added.key_id.to_string(),
            "publicKey": added.public_key.to_string(),
            "signedBy": added.signed_by.to_string(),
        }),
        KeyEntry::Retired(retired) => json!({
            "id": retired.key_id.to_string(),
            "signedBy": retired.signed_by.to_string(),
        }),
    }
}

fn of_labels(labels: &Labels) -> Value {
    labels.iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
}

/// Digests of what the caller sent, not that itself.
pub(super) fn request_key_fields(key: &IdempotencyKey) -> Value {
    json!({ "key": hex::encode(key.key.0), "body": hex::encode(key.body.0) })
}

fn of_reading(reading: &ClockReading) -> Value {
    json!({ "id": &*reading.clock, "microseconds": reading.microseconds })
}

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
