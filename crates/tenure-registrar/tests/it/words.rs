//! How a story says what is asked and what is done.

use tenure_core::kernel::{
    Acquire, Answer, Claim, Command, Contention, Event, Fence, Holder, Labels, Mode, Nonce, Principal,
    Refusal, Resource, Span, Tick, Want,
};
use tenure_core::lease::ReleaseReason;
use tenure_registrar::{Caller, Effect, Reply};

use crate::story::read;

/// `acquire db/shared+cache ann 10 wait 5`, `renew 1`, `renew 1 for 5`, `release 1`, `expire`.
pub fn command(words: &[&str]) -> Command {
    let lease = |word: &str| Fence(word.parse().expect("a lease's number"));
    match words {
        ["acquire", resources, name, ttl, rest @ ..] => Command::Acquire(Acquire {
            principal: Principal::parse(name).expect("a principal"),
            holder: Holder::parse(name).expect("a holder"),
            wants: resources.split('+').map(|text| want(text, span(ttl))).collect(),
            contention: match rest {
                ["wait", patience] => Contention::Queue { patience: span(patience) },
                _ => Contention::Refuse,
            },
            key: None,
        }),
        ["renew", fence] => Command::Renew { lease: lease(fence), claim: Claim::Token, ttl: None },
        ["renew", fence, "for", ttl] => {
            Command::Renew { lease: lease(fence), claim: Claim::Token, ttl: Some(span(ttl)) }
        }
        ["release", fence] => {
            Command::Release { lease: lease(fence), claim: Claim::Token, reason: ReleaseReason::Completed }
        }
        _ => panic!("no such command: {words:?}"),
    }
}

pub fn want(text: &str, ttl: Span) -> Want {
    let (resource, mode) = text.split_once('/').unwrap_or((text, "exclusive"));
    Want {
        resource: Resource::parse(resource).expect("a resource"),
        others: Default::default(),
        mode: Mode::parse(mode).expect("a mode"),
        ttl,
        nonce: Nonce([1; 16]),
        labels: Labels::default(),
    }
}

pub fn effect<'a>(effect: &Effect, name: impl Fn(&Caller) -> &'a str) -> String {
    match effect {
        Effect::Append(write) => {
            format!("append {}", events(&write.records.decode().iter().map(read).collect::<Vec<_>>()))
        }
        Effect::Publish(published) => format!("publish {}", events(published)),
        Effect::Served { ticket, leases } => format!("t{} served{}", ticket.0, numbers(leases)),
        Effect::Unserved { ticket, end } => format!("t{} unserved {end:?}", ticket.0),
        Effect::Answer { caller, reply } => format!("{}: {}", name(caller), self::reply(reply)),
        Effect::StepDown(failure) => format!("step down {failure:?}"),
    }
}

fn events(events: &[Event]) -> String {
    events.iter().map(event).collect::<Vec<_>>().join(", ")
}

fn event(event: &Event) -> String {
    match event {
        Event::Issued(issued) => format!("issued {} until {}", issued.fence.0, tick(issued.expires_at)),
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

fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Granted { leases } => format!("granted{}", numbers(leases)),
        Answer::Queued { ticket, .. } => format!("waits as t{}", ticket.0),
        Answer::Renewed { lease, expires_at } => format!("renewed {} until {}", lease.0, tick(*expires_at)),
        Answer::Released { lease } => format!("released {}", lease.0),
        Answer::Refused(Refusal::Held { holder, .. }) => format!("held by {holder}"),
        Answer::Refused(Refusal::Over { lease, .. }) => format!("{} is over", lease.0),
        Answer::Refused(Refusal::NotFound) => "no such lease".into(),
        other => format!("{other:?}"),
    }
}

fn numbers(leases: &[Fence]) -> String {
    leases.iter().map(|fence| format!(" {}", fence.0)).collect()
}

fn tick(tick: Tick) -> String {
    seconds(tick.0)
}

/// Microseconds as a story writes them.
pub fn seconds(microseconds: u64) -> String {
    let text = format!("{}.{:06}", microseconds / 1_000_000, microseconds % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// Seconds of a story, in microseconds.
pub fn span(text: &str) -> Span {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let part = |digits: &str| digits.parse::<u64>().unwrap_or_else(|_| panic!("no seconds: {text}"));
    Span(part(whole) * 1_000_000 + part(&format!("{fraction:0<6}")))
}
