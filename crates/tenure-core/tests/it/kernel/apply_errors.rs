//! One test for each reason for which an event is refused as not following from those before it.

use tenure_core::kernel::{
    Alternatives, ApplyError, ClockReading, Event, Fence, IdempotencyKey, IssuedLease, KernelState, Labels,
    LeaseMode, LeaseRequest, LeaseTerms, Nonce, QueuedAcquire, RequestDigest, RevocationCause, Tick,
    TickDuration, Ticket, WaitEnd,
};
use tenure_core::lease::ReleaseReason;

use crate::kernel::strategies::{holder, principal, resource};

/// `db` held by holder 0 from tick 10 to 20, and holder 1 in the queue for it until 18, with a key.
fn ledger() -> KernelState {
    let mut state = KernelState::default();
    state.apply(&Event::Issued(issued())).expect("the first follows");
    state.apply(&Event::Queued(queued())).expect("the second follows");
    state
}

fn issued() -> IssuedLease {
    IssuedLease {
        fence: Fence(5),
        resource: resource(0),
        holder: holder(0),
        principal: principal(0),
        terms: LeaseTerms {
            mode: LeaseMode::Exclusive,
            issued_at: Tick(10),
            expires_at: Tick(20),
            ttl: TickDuration(10),
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

/// Another lease, which follows: on another resource, later.
fn next_issued() -> IssuedLease {
    let terms = LeaseTerms { issued_at: Tick(11), expires_at: Tick(21), ..issued().terms };
    IssuedLease { fence: Fence(6), resource: resource(1), terms, ..issued() }
}

fn queued() -> QueuedAcquire {
    let request = LeaseRequest::new(resource(0), LeaseMode::Exclusive, TickDuration(5), Nonce::default());
    let (ticket, at, until) = (Ticket(3), Tick(10), Tick(18));
    let key = Some(IdempotencyKey { key: RequestDigest([1; 16]), body: RequestDigest([2; 16]) });
    QueuedAcquire {
        ticket,
        holder: holder(1),
        principal: principal(1),
        requests: vec![request],
        at,
        until,
        key,
    }
}

fn next_queued() -> QueuedAcquire {
    QueuedAcquire { ticket: Ticket(4), key: None, ..queued() }
}

/// The event is refused for this reason, and changes nothing.
#[track_caller]
fn check_rejected(event: Event, reason: &'static str) {
    let mut state = ledger();
    assert_eq!(state.apply(&event), Err(ApplyError(reason)));
    assert_eq!(state.to_comparable(), ledger().to_comparable(), "refused, and yet changed");
}

#[track_caller]
fn check_accepted(event: Event) {
    let mut state = ledger();
    assert_eq!(state.apply(&event), Ok(()));
    assert_eq!(state.check_invariants(), Ok(()));
}

fn renewed(lease: u64, at: u64, expires_at: u64, ttl: u64) -> Event {
    Event::Renewed { lease: Fence(lease), at: Tick(at), expires_at: Tick(expires_at), ttl: TickDuration(ttl) }
}

fn released(lease: u64, at: u64, by: u8) -> Event {
    let (lease, at, by) = (Fence(lease), Tick(at), holder(by));
    Event::Released { lease, at, by, reason: ReleaseReason::Completed }
}

fn revoked(lease: u64, at: u64) -> Event {
    let (lease, at, by, detail) = (Fence(lease), Tick(at), principal(9), "".into());
    Event::Revoked { lease, at, cause: RevocationCause::Revoked, by, detail }
}

#[test]
fn event_before_the_last_tick_is_rejected() {
    let reason = "its tick is before the last one";
    check_rejected(renewed(5, 9, 30, 10), reason);
    check_rejected(Event::Expired { lease: Fence(5), at: Tick(9) }, reason);
    check_rejected(Event::Left { ticket: Ticket(3), at: Tick(9), end: WaitEnd::Gone }, reason);
}

#[test]
fn reused_or_out_of_range_fence_is_rejected() {
    let reason = "its fence was used before";
    check_accepted(Event::Issued(next_issued()));
    check_accepted(Event::Issued(IssuedLease { fence: Fence::MAX, ..next_issued() }));
    for fence in [Fence(0), Fence(4), Fence(5), Fence(Fence::MAX.0 + 1), Fence(u64::MAX)] {
        check_rejected(Event::Issued(IssuedLease { fence, ..next_issued() }), reason);
    }
}

#[test]
fn issued_event_without_duration_is_rejected() {
    for terms in [
        LeaseTerms { expires_at: Tick(11), ..next_issued().terms },
        LeaseTerms { ttl: TickDuration(0), ..next_issued().terms },
    ] {
        check_rejected(Event::Issued(IssuedLease { terms, ..next_issued() }), "it grants no time");
    }
}

#[test]
fn issued_event_with_renewals_is_rejected() {
    let mut issued = next_issued();
    issued.terms.renewals = 1;
    check_rejected(Event::Issued(issued), "it is renewed already");
}

#[test]
fn issued_event_on_a_held_resource_is_rejected() {
    let reason = "its resource is held";
    check_rejected(Event::Issued(IssuedLease { resource: resource(0), ..next_issued() }), reason);
    // Not even when the first is over: its end is announced first.
    let terms = LeaseTerms { issued_at: Tick(20), expires_at: Tick(30), ..next_issued().terms };
    check_rejected(Event::Issued(IssuedLease { resource: resource(0), terms, ..next_issued() }), reason);
}

#[test]
fn event_with_a_holder_of_another_principal_is_rejected() {
    let reason = "its holder is somebody else's";
    check_rejected(Event::Issued(IssuedLease { principal: principal(2), ..next_issued() }), reason);
    check_rejected(Event::Queued(QueuedAcquire { principal: principal(2), ..next_queued() }), reason);
}

#[test]
fn issued_event_must_match_its_queue_ticket() {
    let ended_at = |at: u64| {
        let mut state = ledger();
        let end = if at < 20 { revoked(5, at) } else { Event::Expired { lease: Fence(5), at: Tick(at) } };
        state.apply(&end).expect("the lease ends");
        let (holder, principal, key) = (holder(1), principal(1), queued().key);
        let (ticket, resource) = (Some(Ticket(3)), resource(0));
        let terms = LeaseTerms { issued_at: Tick(at), expires_at: Tick(50), ..next_issued().terms };
        (state, IssuedLease { ticket, resource, terms, holder, principal, key, ..next_issued() })
    };
    let (mut state, served) = ended_at(17);
    assert_eq!(state.apply(&Event::Issued(served.clone())), Ok(()));
    assert_eq!(state.check_invariants(), Ok(()));

    let shared = LeaseTerms { mode: LeaseMode::Shared, ..served.terms.clone() };
    let late = LeaseTerms { issued_at: Tick(18), ..served.terms.clone() };
    let wrong = [
        (
            ended_at(17).0,
            IssuedLease { resource: resource(1), ..served.clone() },
            "its ticket is for something else",
        ),
        (ended_at(17).0, IssuedLease { terms: shared, ..served.clone() }, "its ticket is for something else"),
        (ended_at(18).0, IssuedLease { terms: late, ..served.clone() }, "its ticket was over"),
        (ended_at(17).0, IssuedLease { key: None, ..served.clone() }, "its ticket is somebody else's"),
        (
            ended_at(17).0,
            IssuedLease { holder: holder(2), ..served.clone() },
            "its ticket is somebody else's",
        ),
        (ended_at(17).0, IssuedLease { ticket: Some(Ticket(4)), ..served }, "its ticket was never drawn"),
    ];
    for (mut state, issued, reason) in wrong {
        let before = state.to_comparable();
        assert_eq!(state.apply(&Event::Issued(issued)), Err(ApplyError(reason)));
        assert_eq!(state.to_comparable(), before);
    }
}

#[test]
fn event_with_a_key_of_another_request_is_rejected() {
    let reason = "its key was used for something else";
    let (holder, principal, key) = (holder(1), principal(1), queued().key);
    let issued = IssuedLease { holder, principal, key, ..next_issued() };
    check_rejected(Event::Issued(issued), reason);
    check_rejected(Event::Queued(QueuedAcquire { key: queued().key, ..next_queued() }), reason);
}

#[test]
fn event_on_an_unknown_lease_or_ticket_is_rejected() {
    let reason = "there is no such lease";
    for lease in [0, 4, 6, u64::MAX] {
        check_rejected(renewed(lease, 12, 30, 10), reason);
        check_rejected(released(lease, 12, 0), reason);
        check_rejected(revoked(lease, 12), reason);
        check_rejected(Event::Expired { lease: Fence(lease), at: Tick(40) }, reason);
    }
    let end = WaitEnd::Gone;
    check_rejected(Event::Left { ticket: Ticket(4), at: Tick(12), end }, "it ends a wait that is not there");
}

#[test]
fn renew_release_and_revoke_after_expiry_are_rejected() {
    let reason = "the lease was over";
    check_accepted(released(5, 19, 0));
    check_rejected(renewed(5, 20, 30, 10), reason);
    check_rejected(released(5, 20, 0), reason);
    check_rejected(revoked(5, 20), reason);
}

#[test]
fn expired_event_before_the_expiry_is_rejected() {
    check_rejected(Event::Expired { lease: Fence(5), at: Tick(19) }, "it ends a lease too early");
    check_accepted(Event::Expired { lease: Fence(5), at: Tick(20) });
}

#[test]
fn released_event_by_another_holder_is_rejected() {
    check_rejected(released(5, 12, 1), "it releases somebody else's lease");
}

#[test]
fn renewed_event_that_does_not_extend_is_rejected() {
    let reason = "it renews without giving time";
    check_accepted(renewed(5, 12, 21, 10));
    check_rejected(renewed(5, 12, 20, 10), reason);
    check_rejected(renewed(5, 12, 19, 10), reason);
    check_rejected(renewed(5, 12, 30, 0), reason);
}

#[test]
fn invalid_queued_event_is_rejected() {
    check_accepted(Event::Queued(next_queued()));
    let queued = |change: fn(&mut QueuedAcquire)| {
        let mut queued = next_queued();
        change(&mut queued);
        Event::Queued(queued)
    };
    check_rejected(queued(|queued| queued.ticket = Ticket(3)), "its ticket was drawn before");
    check_rejected(queued(|queued| queued.until = queued.at), "it waits no time");
    check_rejected(queued(|queued| queued.requests.clear()), "it waits for nothing");
    check_rejected(
        queued(|queued| queued.requests.push(queued.requests[0].clone())),
        "it waits for one resource twice",
    );
    check_rejected(
        queued(|queued| queued.requests[0].ttl = TickDuration(0)),
        "it waits for a lease of no time",
    );
    let with_alternatives = |alternatives: fn() -> Alternatives| {
        let mut queued = next_queued();
        queued.requests.push(LeaseRequest { alternatives: alternatives(), ..queued.requests[0].clone() });
        Event::Queued(queued)
    };
    check_accepted(with_alternatives(|| Alternatives::new([resource(1)])));
    check_rejected(with_alternatives(|| Alternatives::new([resource(0)])), "it waits for one resource twice");
    check_rejected(
        with_alternatives(|| Alternatives::new([resource(1), resource(1)])),
        "it waits for one resource twice",
    );
}

#[test]
fn wall_clock_anchor_is_monotonic() {
    let reading = || ClockReading { clock: "boot".into(), microseconds: 7 };
    let resumed =
        |at, wall_anchor| Event::Resumed { at: Tick(at), reading: reading(), wall_anchor, wall_clock: 0 };
    let marked = Event::Marked { at: Tick(12), reading: reading() };
    check_rejected(marked.clone(), "it marks the time before any writer started");
    let mut state = ledger();
    state.apply(&resumed(12, 1_000_000)).expect("a writer starts");
    state.apply(&marked).expect("time goes on");
    // Ten ticks later it is 10,000 nanoseconds later.
    let before = state.to_comparable();
    assert_eq!(state.apply(&resumed(22, 1_009_999)), Err(ApplyError("it sets wall time back")));
    assert_eq!(state.to_comparable(), before);
    assert_eq!(state.apply(&resumed(22, 1_010_000)), Ok(()));
}
