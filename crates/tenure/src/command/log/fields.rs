//! What an event says, for programs: every field that it has, but never what a token is made from.

use serde_json::{Map, Value, json};
use tenure_core::kernel::{
    ClockReading, Event, IdempotencyKey, IssuedLease, Labels, LeaseRequest, QueuedAcquire, Resource, Tick,
};
use tenure_ledger::signing::KeyEntry;

use super::{LogEntry, api_fields};
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
            Event::Intent(event) => api_fields::intent_fields(event),
            Event::Agent(event) => api_fields::agent_fields(event, self.tag, |tick| self.time_of(tick)),
            Event::Work(event) => api_fields::work_fields(event, self.tag),
            Event::File(event) => api_fields::file_fields(event, |tick| self.time_of(tick)),
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
            lease["authority"] = api_fields::work_authority_fields(authority, self.tag);
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
