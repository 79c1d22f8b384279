//! What an event of a session says: for people, and for programs.

use serde_json::{Value, json};
use tenure_core::kernel::{Accepted, IntentEvent, Target};

/// The session, and what else the event says.
pub(super) fn details_of(event: &IntentEvent) -> String {
    let session = event.session();
    match event {
        IntentEvent::Accepted(accepted) => {
            let what = match &accepted.intent.target {
                Target::Service(service) => service.to_string(),
                Target::Recording { id, start_ms } => format!("{id} from {start_ms} ms"),
            };
            format!("{session}  {what}  {} for {}", accepted.intent.profile, accepted.principal)
        }
        IntentEvent::Starting { worker, slot: Some(slot), .. } => {
            format!("{session}  tuner {slot}  by {worker}")
        }
        IntentEvent::Starting { worker, slot: None, .. } => format!("{session}  by {worker}"),
        IntentEvent::Running { process, .. } => format!("{session}  {process}"),
        IntentEvent::Stopping { by, .. } => format!("{session}  by {by}"),
        IntentEvent::Ended { end, detail, .. } if detail.is_empty() => {
            format!("{session}  {} {}", end.reason(), end.outcome())
        }
        IntentEvent::Ended { end, detail, .. } => {
            format!("{session}  {} {}: {detail}", end.reason(), end.outcome())
        }
    }
}

/// Every field that the event has.
pub(super) fn fields_of(event: &IntentEvent) -> Value {
    let mut session = json!({ "session_id": event.session().as_str(), "state": event.leads_to().as_str() });
    let mut put = |name: &str, value: Value| session[name] = value;
    match event {
        IntentEvent::Accepted(accepted) => put_accepted(accepted, put),
        IntentEvent::Starting { worker, guard, slot, .. } => {
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

fn put_accepted(accepted: &Accepted, mut put: impl FnMut(&str, Value)) {
    match &accepted.intent.target {
        Target::Service(service) => put("serviceRef", (&**service).into()),
        Target::Recording { id, start_ms } => {
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
    put("idempotencyKey", accepted.key.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into());
    put("startByTick", accepted.start_by.0.into());
}
