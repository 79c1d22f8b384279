//! What an event says, for programs: every field that it has, but never what a token is made from.

use serde_json::{Map, Value, json};
use tenure_core::kernel::{ClockReading, Event, Issued, Labels, Queued, RequestKey, Resource, Tick, Want};
use tenure_ledger::signing::KeyEntry;

use super::{Entry, api_fields};
use crate::output::{time_of, time_of_wall};

type Fields = Map<String, Value>;

impl Entry<'_> {
    pub(super) fn fields(&self) -> Fields {
        let mut fields = Fields::new();
        fields.insert("seq".into(), self.seq.into());
        if let Some(event) = &self.event {
            fields.insert("tick".into(), event.at().0.into());
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
            Event::Intent(event) => api_fields::of_intent(event),
            Event::Agent(event) => api_fields::of_agent(event, self.tag, |tick| self.time_of(tick)),
            Event::Work(event) => api_fields::of_work(event, self.tag),
            Event::File(event) => api_fields::of_file(event, |tick| self.time_of(tick)),
            Event::Marked { reading, .. } => json!({ "clock": of_reading(reading) }),
            Event::Resumed { reading, wall_anchor, wall_clock, .. } => json!({
                "clock": of_reading(reading),
                "wallAnchor": time_of_wall(*wall_anchor),
                "wallClock": time_of_wall(*wall_clock),
            }),
            Event::Restored { epoch, fence, hold_until, .. } => json!({
                "epoch": epoch,
                "fence": fence.0,
                "holdUntilTick": hold_until.0,
                "holdUntil": self.time_of(*hold_until),
            }),
        }
    }

    fn of_issued(&self, issued: &Issued) -> Value {
        let mut lease = json!({
            "id": self.tag.lease_id(issued.fence),
            "fence": issued.fence.0,
            "resource": issued.resource.as_str(),
            "holder": issued.holder.as_str(),
            "principal": issued.principal.as_str(),
            "mode": issued.mode.as_str(),
            "expiresTick": issued.expires_at.0,
            "expiresAt": self.time_of(issued.expires_at),
            "ttlMs": issued.ttl.as_millis(),
            "labels": of_labels(&issued.labels),
        });
        if let Some(authority) = &issued.authority {
            lease["authority"] = api_fields::authority(authority, self.tag);
        }
        if let Some(key) = &issued.key {
            lease["idempotency"] = of_request_key(key);
        }
        if let Some(ticket) = issued.ticket {
            lease["ticket"] = ticket.0.into();
        }
        if let Some(continues) = issued.continues {
            lease["continues"] = self.tag.lease_id(continues).into();
        }
        lease
    }

    fn of_queued(&self, queued: &Queued) -> Value {
        let want = |want: &Want| {
            let mut wanted = json!({
                "resource": want.resource.as_str(),
                "mode": want.mode.as_str(),
                "ttlMs": want.ttl.as_millis(),
                "labels": of_labels(&want.labels),
            });
            if !want.others.is_empty() {
                wanted["others"] = want.others.iter().map(Resource::as_str).collect();
            }
            wanted
        };
        let wants: Vec<_> = queued.wants.iter().map(want).collect();
        let mut wait = json!({
            "ticket": queued.ticket.0,
            "holder": queued.holder.as_str(),
            "principal": queued.principal.as_str(),
            "wants": wants,
            "untilTick": queued.until.0,
            "until": self.time_of(queued.until),
        });
        if let Some(key) = &queued.key {
            wait["idempotency"] = of_request_key(key);
        }
        wait
    }

    fn time_of(&self, tick: Tick) -> String {
        time_of(self.anchor, tick)
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
pub(super) fn of_request_key(key: &RequestKey) -> Value {
    json!({ "key": hex::encode(key.key.0), "body": hex::encode(key.body.0) })
}

fn of_reading(reading: &ClockReading) -> Value {
    json!({ "id": &*reading.clock, "microseconds": reading.microseconds })
}
