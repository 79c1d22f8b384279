//! What an event about files says: for people, and for programs.

use serde_json::{Value, json};
use tenure_core::kernel::{FileEvent, Holder, Owner, Tick};

/// Who, and what became of which file.
pub(super) fn details_of(event: &FileEvent, time: impl Fn(Tick) -> String) -> String {
    match event {
        FileEvent::Began { session, .. } => {
            let below = session.parent.as_ref().map_or_else(String::new, |parent| format!(" below {parent}"));
            format!("{}  {} in {}{below}", session.id, session.agent, session.process)
        }
        FileEvent::Seen { session, task, .. } => match task {
            Some(task) => format!("{session}  is at: {task}"),
            None => session.to_string(),
        },
        FileEvent::TurnEnded { session, .. } => session.to_string(),
        FileEvent::Contended(contended) => format!(
            "ticket {}  {}  {}  held by {}, retry at {}{}",
            contended.ticket.0,
            contended.session,
            contended.want.resource,
            contended.owner,
            time(contended.retry_at),
            circle_in_words(&contended.circle),
        ),
        FileEvent::Blocked { ticket, found } => format!(
            "report R-{}  held by {} since {}, last heard of at {}{}",
            ticket.0,
            found.owner.holder,
            time(found.held_since),
            time(found.seen_at),
            circle_in_words(&found.circle),
        ),
        FileEvent::Closed { ticket, end, .. } => format!("ticket {}  {}", ticket.0, end.as_str()),
        FileEvent::Ended { session, end, detail, .. } => format!("{session}  {}: {detail}", end.as_str()),
        FileEvent::Violated { resource, owner, session, detail, .. } => {
            let name = |holder: &Option<Holder>| {
                holder.as_ref().map_or_else(|| "nobody known".to_owned(), Holder::to_string)
            };
            format!("{resource}  of {}, by {}: {detail}", name(owner), name(session))
        }
    }
}

/// Every field that the event has.
pub(super) fn fields_of(event: &FileEvent, time: impl Fn(Tick) -> String) -> Value {
    let name = |holder: &Option<Holder>| holder.as_ref().map(|holder| holder.as_str().to_owned());
    match event {
        FileEvent::Began { session, .. } => json!({ "file": {
            "id": session.id.as_str(),
            "parent": name(&session.parent),
            "agent": &*session.agent,
            "session": &*session.session,
            "process": &*session.process,
            "task": session.task.as_deref(),
        }}),
        FileEvent::Seen { session, task, .. } => {
            json!({ "file": { "id": session.as_str(), "task": task.as_deref() } })
        }
        FileEvent::TurnEnded { session, .. } => json!({ "file": { "id": session.as_str() } }),
        FileEvent::Contended(contended) => json!({ "file": {
            "ticket": contended.ticket.0,
            "id": contended.session.as_str(),
            "resource": contended.want.resource.as_str(),
            "owner": contended.owner.as_str(),
            "retryTick": contended.retry_at.0,
            "retryAt": time(contended.retry_at),
            "circle": names(&contended.circle),
        }}),
        FileEvent::Blocked { ticket, found } => json!({ "file": {
            "ticket": ticket.0,
            "owner": of_owner(&found.owner),
            "heldSince": time(found.held_since),
            "lastHeartbeatAt": time(found.seen_at),
            "circle": names(&found.circle),
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

fn of_owner(owner: &Owner) -> Value {
    json!({
        "id": owner.holder.as_str(),
        "agent": &*owner.agent,
        "session": &*owner.session,
        "process": &*owner.process,
        "task": &*owner.task,
    })
}

fn names(circle: &[Holder]) -> Vec<&str> {
    circle.iter().map(Holder::as_str).collect()
}

fn circle_in_words(circle: &[Holder]) -> String {
    if circle.is_empty() {
        return String::new();
    }
    format!("; they wait for each other: {}", names(circle).join(", "))
}
