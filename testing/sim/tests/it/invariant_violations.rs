//! Each law is shown a history that breaks it, and must say so: a check that never fails checks nothing.

use tenure_core::kernel::{
    Event, Fence, Holder, Intent, IntentAcceptance, IntentEvent, IntentKey, IntentSessionEnd, IntentTarget,
    IssuedLease, Labels, LeaseMode, LeaseRequest, LeaseTerms, Nonce, Principal, QueuedAcquire, Resource,
    Tick, TickDuration, Ticket,
};
use tenure_sim::invariants::{LedgerModel, Violation};

const SECOND: u64 = 1_000_000;

/// Applies every event at the true time of its tick; all but the last must be lawful.
fn verdict(events: &[Event]) -> Result<(), Violation> {
    let mut laws = LedgerModel::default();
    let (last, before) = events.split_last().expect("a history has events");
    for event in before {
        laws.apply_durable(event, event.occurred_at().0).expect("only the last event breaks a law");
    }
    laws.apply_durable(last, last.occurred_at().0)
}

fn breaks(events: &[Event], law: &str) {
    let Violation(text) = verdict(events).expect_err("this history breaks a law");
    assert!(text.contains(law), "found {text:?}, not {law:?}");
}

fn resource() -> Resource {
    Resource::parse("thing:1").unwrap()
}

fn issued(fence: u64, at: u64, seconds: u64, mode: LeaseMode) -> IssuedLease {
    IssuedLease {
        fence: Fence(fence),
        resource: resource(),
        holder: Holder::parse(&format!("holder-{fence}")).unwrap(),
        principal: Principal::parse("owner").unwrap(),
        terms: LeaseTerms {
            mode,
            issued_at: Tick(at * SECOND),
            expires_at: Tick((at + seconds) * SECOND),
            ttl: TickDuration::from_secs(seconds),
            renewals: 0,
            nonce: Nonce::default(),
            labels: Labels::default(),
        },
        key: None,
        ticket: None,
        continues: None,
        authority: None,
    }
}

fn granted(fence: u64, at: u64, seconds: u64) -> Event {
    Event::Issued(issued(fence, at, seconds, LeaseMode::Exclusive))
}

fn served(fence: u64, at: u64, ticket: u64) -> Event {
    let holder = Holder::parse(&format!("waiter-{ticket}")).unwrap();
    Event::Issued(IssuedLease {
        ticket: Some(Ticket(ticket)),
        holder,
        ..issued(fence, at, 5, LeaseMode::Exclusive)
    })
}

fn queued(ticket: u64, at: u64, until: u64) -> Event {
    let (mode, ttl) = (LeaseMode::Exclusive, TickDuration::from_secs(5));
    Event::Queued(QueuedAcquire {
        ticket: Ticket(ticket),
        holder: Holder::parse(&format!("waiter-{ticket}")).unwrap(),
        principal: Principal::parse("owner").unwrap(),
        requests: vec![LeaseRequest::new(resource(), mode, ttl, Nonce::default())],
        at: Tick(at * SECOND),
        until: Tick(until * SECOND),
        key: None,
    })
}

fn renewed(lease: u64, at: u64, expires_at: u64) -> Event {
    let (at, expires_at) = (Tick(at * SECOND), Tick(expires_at * SECOND));
    Event::Renewed { lease: Fence(lease), at, expires_at, ttl: expires_at.since(at) }
}

fn expired(lease: u64, at: u64) -> Event {
    Event::Expired { lease: Fence(lease), at: Tick(at * SECOND) }
}

#[test]
fn a_lawful_history_is_accepted() {
    let history = [granted(1, 0, 10), renewed(1, 5, 15), queued(1, 6, 60), expired(1, 15), served(2, 15, 1)];
    assert_eq!(verdict(&history), Ok(()));
}

#[test]
fn overlapping_exclusive_leases_are_a_violation() {
    breaks(&[granted(1, 0, 10), granted(2, 5, 10)], "both hold");
    breaks(&[granted(1, 0, 10), granted(2, 10, 10)], "both hold");
    let reader = |fence| Event::Issued(issued(fence, 0, 10, LeaseMode::Shared));
    assert_eq!(verdict(&[reader(1), reader(2)]), Ok(()));
    breaks(&[reader(1), granted(2, 1, 10)], "both hold");
}

#[test]
fn an_early_expiry_is_a_violation() {
    breaks(&[granted(1, 0, 10), expired(1, 9)], "expires early by its tick");
}

#[test]
fn an_expiry_by_a_fast_clock_is_a_violation() {
    let mut laws = LedgerModel::default();
    laws.apply_durable(&granted(1, 0, 10), 0).unwrap();
    let Violation(text) = laws.apply_durable(&expired(1, 10), 9_900_000).expect_err("100 ms are missing");
    assert!(text.contains("of true time"), "{text}");
}

#[test]
fn renewing_or_expiring_an_ended_lease_is_a_violation() {
    breaks(&[granted(1, 0, 10), renewed(1, 10, 20)], "when it is over");
    breaks(&[granted(1, 0, 10), expired(1, 10), renewed(1, 11, 20)], "does not live");
    breaks(&[granted(1, 0, 10), expired(1, 10), expired(1, 11)], "does not live");
}

#[test]
fn a_renewal_that_shortens_is_a_violation() {
    breaks(&[granted(1, 0, 10), renewed(1, 1, 9)], "shortened");
}

#[test]
fn a_reused_fence_is_a_violation() {
    breaks(&[granted(5, 0, 10), expired(5, 10), granted(5, 11, 10)], "used again");
    breaks(&[granted(5, 0, 10), expired(5, 10), granted(4, 11, 10)], "used again");
}

#[test]
fn decreasing_ticks_are_a_violation() {
    breaks(&[granted(1, 5, 10), queued(1, 4, 60)], "time goes back");
}

#[test]
fn a_grant_that_overtakes_a_waiter_is_a_violation() {
    let held = [granted(1, 0, 10), queued(1, 1, 60), queued(2, 2, 60), expired(1, 10)];
    breaks(&[&held[..], &[served(2, 10, 2)]].concat(), "overtakes");
    breaks(&[&held[..], &[granted(2, 10, 5)]].concat(), "overtakes");
    assert_eq!(verdict(&[&held[..], &[served(2, 10, 1)]].concat()), Ok(()));
}

/// Somebody who would have this or another.
fn queued_with_alternative(ticket: u64, at: u64) -> Event {
    let other = Resource::parse("thing:2").unwrap();
    match queued(ticket, at, 60) {
        Event::Queued(queued) => {
            let wants = queued
                .requests
                .into_iter()
                .map(|request| request.with_alternatives([other.clone()]))
                .collect();
            Event::Queued(QueuedAcquire { requests: wants, ..queued })
        }
        other => other,
    }
}

#[test]
fn a_grant_that_overtakes_a_waiter_with_alternatives_is_a_violation() {
    let held = [granted(1, 0, 10), queued_with_alternative(1, 1), queued(2, 2, 60), expired(1, 10)];
    breaks(&[&held[..], &[served(2, 10, 2)]].concat(), "overtakes");
    let other = Resource::parse("thing:2").unwrap();
    let elsewhere = Event::Issued(IssuedLease { resource: other, ..issued(2, 10, 5, LeaseMode::Exclusive) });
    breaks(&[&held[..], &[elsewhere]].concat(), "overtakes");
    assert_eq!(verdict(&[&held[..], &[served(2, 10, 1)]].concat()), Ok(()));
}

#[test]
fn a_grant_of_an_unrequested_resource_is_a_violation() {
    let strange = Resource::parse("thing:3").unwrap();
    let holder = Holder::parse("waiter-1").unwrap();
    let issued = IssuedLease {
        resource: strange,
        holder,
        ticket: Some(Ticket(1)),
        ..issued(2, 2, 5, LeaseMode::Exclusive)
    };
    breaks(&[granted(1, 0, 10), queued_with_alternative(1, 1), Event::Issued(issued)], "did not wait for");
}

#[test]
fn a_waiter_for_a_free_resource_is_a_violation() {
    let has_stuck_waiter = |events: &[Event]| {
        let mut laws = LedgerModel::default();
        events
            .iter()
            .for_each(|event| laws.apply_durable(event, event.occurred_at().0).expect("lawful so far"));
        laws.check_no_stuck_waiter().is_err()
    };
    assert!(!has_stuck_waiter(&[granted(1, 0, 10), queued(1, 1, 60)]));
    assert!(has_stuck_waiter(&[granted(1, 0, 10), queued(1, 1, 60), expired(1, 10)]));
    assert!(has_stuck_waiter(&[granted(1, 0, 10), queued_with_alternative(1, 1)]), "the other one is free");
    assert!(has_stuck_waiter(&[granted(1, 0, 10), queued(1, 1, 60), queued_with_alternative(2, 1)]));
}

#[test]
fn a_grant_after_the_wait_timeout_is_a_violation() {
    let history = [granted(1, 0, 10), queued(1, 1, 10), expired(1, 10), served(2, 10, 1)];
    breaks(&history, "after its patience");
}

fn session(name: &str) -> Holder {
    Holder::parse(name).unwrap()
}

fn step(event: IntentEvent) -> Event {
    Event::Intent(Box::new(event))
}

fn accepted(name: &str, key: u8) -> Event {
    let intent = Intent {
        target: IntentTarget::Recording { id: "film".into(), start_ms: 1_000 },
        profile: "p".into(),
        params: "".into(),
        correlation: "".into(),
    };
    let (key, principal) = (IntentKey([key; 32]), Principal::parse("viewer").unwrap());
    let (at, start_by) = (Tick(0), Tick(SECOND));
    step(IntentEvent::Accepted(IntentAcceptance {
        session: session(name),
        intent,
        key,
        principal,
        at,
        start_by,
    }))
}

fn starting(name: &str) -> Event {
    let (at, worker, guard) = (Tick(0), session("worker:1"), Fence(1));
    step(IntentEvent::Starting { session: session(name), at, worker, leader: guard, slot: None })
}

fn ended(name: &str) -> Event {
    let (at, end, detail) = (Tick(0), IntentSessionEnd::Completed, "".into());
    step(IntentEvent::Ended { session: session(name), at, end, detail })
}

// S1-5, S1-20
#[test]
fn an_invalid_intent_session_transition_is_a_violation() {
    breaks(&[accepted("s1", 1), accepted("s1", 2)], "begins twice");
    breaks(&[accepted("s1", 1), accepted("s2", 1)], "are one intent");
    breaks(&[accepted("s1", 1), ended("s1"), accepted("s1", 1)], "begins twice");
    breaks(&[accepted("s1", 1), starting("s1"), starting("s1")], "goes back");
    breaks(&[accepted("s1", 1), ended("s1"), starting("s1")], "goes on and is over");
    let running = step(IntentEvent::Running { session: session("s1"), at: Tick(0), process: "".into() });
    breaks(&[accepted("s1", 1), running], "with nobody");
    assert_eq!(verdict(&[accepted("s1", 1), ended("s1"), accepted("s2", 1)]), Ok(()));
}

#[test]
fn an_intent_session_without_its_leases_is_a_violation() {
    let whole = |events: &[Event]| {
        let mut laws = LedgerModel::default();
        events
            .iter()
            .for_each(|event| laws.apply_durable(event, event.occurred_at().0).expect("lawful so far"));
        laws.check_between_batches().map_err(|Violation(text)| text)
    };
    let lease = |name: &str| {
        let resource = Resource::parse("recording:film:1").unwrap();
        Event::Issued(IssuedLease {
            resource,
            holder: session(name),
            ..issued(1, 0, 10, LeaseMode::Exclusive)
        })
    };
    assert_eq!(whole(&[accepted("s1", 1), lease("s1"), starting("s1")]), Ok(()));
    let found = whole(&[accepted("s1", 1), starting("s1")]);
    assert!(found.is_err_and(|text| text.contains("is Starting and holds []")));
    let found = whole(&[accepted("s1", 1), lease("s1"), starting("s1"), ended("s1")]);
    assert!(found.is_err_and(|text| text.contains("is over and holds")));
    let other =
        Event::Issued(IssuedLease { holder: session("s1"), ..issued(1, 0, 10, LeaseMode::Exclusive) });
    assert!(whole(&[accepted("s1", 1), other, starting("s1")]).is_err());
}

#[test]
fn acknowledging_a_grant_before_it_is_durable_is_a_violation() {
    let mut laws = LedgerModel::default();
    laws.apply_durable(&granted(1, 0, 10), 0).unwrap();
    assert_eq!(laws.check_acknowledged(Fence(1)), Ok(()));
    assert!(laws.check_acknowledged(Fence(2)).is_err());
}
