//! How a story says what is asked and what is done.

use tenure_core::kernel::{
    Acquire, Command, CommandOutcome, ContentionPolicy, Event, Fence, Holder, Labels, LeaseCredential,
    LeaseMode, LeaseRequest, Nonce, Principal, Rejection, Resource, Tick, TickDuration,
};
use tenure_core::lease::ReleaseReason;
use tenure_registrar::{Effect, Reply, RequestId};

use crate::scenario::decode_event;

/// `acquire db/shared+cache ann 10 wait 5`, `renew 1`, `renew 1 for 5`, `release 1`, `expire`.
pub fn parse_command(words: &[&str]) -> Command {
    let lease = |word: &str| Fence(word.parse().expect("a lease's number"));
    match words {
        ["acquire", resources, name, ttl, rest @ ..] => Command::Acquire(Acquire {
            principal: Principal::parse(name).expect("a principal"),
            holder: Holder::parse(name).expect("a holder"),
            requests: resources
                .split('+')
                .map(|text| parse_lease_request(text, parse_seconds(ttl)))
                .collect(),
            contention_policy: match rest {
                ["wait", patience] => ContentionPolicy::Queue { wait_timeout: parse_seconds(patience) },
                _ => ContentionPolicy::Deny,
            },
            key: None,
        }),
        ["renew", fence] => {
            Command::Renew { lease: lease(fence), credential: LeaseCredential::Token, ttl: None }
        }
        ["renew", fence, "for", ttl] => Command::Renew {
            lease: lease(fence),
            credential: LeaseCredential::Token,
            ttl: Some(parse_seconds(ttl)),
        },
        ["release", fence] => Command::Release {
            lease: lease(fence),
            claim: LeaseCredential::Token,
            reason: ReleaseReason::Completed,
        },
        _ => panic!("no such command: {words:?}"),
    }
}

pub fn parse_lease_request(text: &str, ttl: TickDuration) -> LeaseRequest {
    let (resource, mode) = text.split_once('/').unwrap_or((text, "exclusive"));
    LeaseRequest {
        resource: Resource::parse(resource).expect("a resource"),
        alternatives: Default::default(),
        mode: LeaseMode::parse(mode).expect("a mode"),
        ttl,
        nonce: Nonce([1; 16]),
        labels: Labels::default(),
    }
}

pub fn format_effect<'a>(effect: &Effect, name: impl Fn(&RequestId) -> &'a str) -> String {
    match effect {
        Effect::Append(write) => {
            format!("append {}", events(&write.records.decode().iter().map(decode_event).collect::<Vec<_>>()))
        }
        Effect::Publish(published) => format!("publish {}", events(published)),
        Effect::Served { ticket, leases } => format!("t{} served{}", ticket.0, numbers(leases)),
        Effect::Unserved { ticket, end } => format!("t{} unserved {end:?}", ticket.0),
        Effect::ServedTooLate { ticket } => format!("t{} too late", ticket.0),
        Effect::Answer { request: caller, reply } => format!("{}: {}", name(caller), self::reply(reply)),
        Effect::StepDown(failure) => format!("step down {failure:?}"),
    }
}

fn events(events: &[Event]) -> String {
    events.iter().map(event).collect::<Vec<_>>().join(", ")
}

fn event(event: &Event) -> String {
    match event {
        Event::Issued(issued) => format!("issued {} until {}", issued.fence.0, tick(issued.terms.expires_at)),
        Event::Renewed { lease, expires_at, .. } => {
            format!("renewed {} until {}", lease.0, tick(*expires_at))
        }
        Event::Released { lease, .. } => format!("released {}", lease.0),
        Event::Expired { lease, at } => format!("expired {} at {}", lease.0, tick(*at)),
        Event::Revoked { lease, .. } => format!("revoked {}", lease.0),
        Event::Queued(queued) => format!("queued t{} until {}", queued.ticket.0, tick(queued.until)),
        Event::Left { ticket, at, .. } => format!("left t{} at {}", ticket.0, tick(*at)),
        Event::Intent(event) => format!("{} {}", event.type_name(), event.session()),
        Event::Agent(event) => event.type_name().into(),
        Event::Work(event) => event.type_name().into(),
        Event::File(event) => event.type_name().into(),
        Event::Marked { at, .. } => format!("marked {}", tick(*at)),
        Event::Restored { fence, .. } => format!("restored after {}", fence.0),
        Event::Resumed { at, .. } => format!("resumed at {}", tick(*at)),
    }
}

fn reply(reply: &Reply) -> String {
    match reply {
        Reply::Answered { answer, .. } => self::answer(answer),
        Reply::Busy => "busy".into(),
        Reply::TooLate => "too late".into(),
        Reply::Unavailable => "unavailable".into(),
        Reply::OutcomeUnknown => "outcome unknown".into(),
    }
}

fn answer(answer: &CommandOutcome) -> String {
    match answer {
        CommandOutcome::Granted { leases } => format!("granted{}", numbers(leases)),
        CommandOutcome::Queued { ticket, .. } => format!("waits as t{}", ticket.0),
        CommandOutcome::Renewed { lease, expires_at } => {
            format!("renewed {} until {}", lease.0, tick(*expires_at))
        }
        CommandOutcome::Released { lease } => format!("released {}", lease.0),
        CommandOutcome::Rejected(Rejection::Held { holder, .. }) => format!("held by {holder}"),
        CommandOutcome::Rejected(Rejection::Ended { lease, .. }) => format!("{} is over", lease.0),
        CommandOutcome::Rejected(Rejection::NotFound) => "no such lease".into(),
        CommandOutcome::Rejected(Rejection::NoSpace) => "no space".into(),
        other => format!("{other:?}"),
    }
}

fn numbers(leases: &[Fence]) -> String {
    leases.iter().map(|fence| format!(" {}", fence.0)).collect()
}

fn tick(tick: Tick) -> String {
    format_seconds(tick.0)
}

/// Microseconds as a story writes them.
pub fn format_seconds(microseconds: u64) -> String {
    let text = format!("{}.{:06}", microseconds / 1_000_000, microseconds % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// Seconds of a story, in microseconds.
pub fn parse_seconds(text: &str) -> TickDuration {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let part = |digits: &str| digits.parse::<u64>().unwrap_or_else(|_| panic!("no seconds: {text}"));
    TickDuration(part(whole) * 1_000_000 + part(&format!("{fraction:0<6}")))
}
