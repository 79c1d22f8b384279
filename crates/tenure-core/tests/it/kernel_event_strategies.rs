//! Events as nobody decided them: each is well formed, and few follow from those before.

use proptest::prelude::*;
use tenure_core::kernel::{
    ClockReading, Event, Fence, Holder, IdempotencyKey, Intent, IntentAcceptance, IntentEvent, IntentKey,
    IntentSessionEnd, IntentTarget, IssuedLease, Labels, LeaseRequest, LeaseTerms, Nonce, Principal,
    QueuedAcquire, RequestDigest, Resource, Tick, TickDuration, Ticket,
};
use tenure_core::lease::ReleaseReason;
use tenure_core::rules::is_stored_verbatim;

use crate::files::strategies::file_event;
use crate::kernel::strategies::{cause, holder, mode, principal, resource, wait_end};
use crate::work::strategies::work_event;

/// Names and numbers that meet, for a state to take or to refuse.
pub fn plausible_event() -> impl Strategy<Value = Event> {
    let resource = (0..3_u8).prop_map(resource).boxed();
    let holder = (0..3_u8).prop_map(holder).boxed();
    let principal = (0..2_u8).prop_map(principal).boxed();
    let number = prop_oneof![40 => 0..12_u64, 1 => Just(Fence::MAX.0), 1 => any::<u64>()].boxed();
    let tick = prop_oneof![40 => 0..30_u64, 1 => Just(86_400_000_030), 1 => any::<u64>()].boxed();
    event(resource, holder, principal, number, tick)
}

/// Anything that can be stored, names of all lengths among it.
pub fn any_event() -> impl Strategy<Value = Event> {
    let resource = name().prop_map(|name| Resource::parse(&name).expect("a resource")).boxed();
    let holder = name().prop_map(|name| Holder::parse(&name).expect("a holder")).boxed();
    let principal = name().prop_map(|name| Principal::parse(&name).expect("a principal")).boxed();
    event(resource, holder, principal, (1..=Fence::MAX.0).boxed(), any::<u64>().boxed())
}

/// Around the length at which an id is a digest, and a name that looks like a digest itself.
fn name() -> BoxedStrategy<String> {
    prop_oneof![
        4 => "[a-z:/é]{1,20}",
        4 => (100..140_usize, "[a-zé]").prop_map(|(length, letter)| letter.repeat(length)),
        1 => Just("x".repeat(4096)),
        1 => "b3-[0-9a-f]{64}",
    ]
    .boxed()
}

type Of<T> = BoxedStrategy<T>;

fn event(
    resource: Of<Resource>,
    holder: Of<Holder>,
    principal: Of<Principal>,
    number: Of<u64>,
    tick: Of<u64>,
) -> Of<Event> {
    let fence = number.clone().prop_map(Fence);
    let tick = tick.prop_map(Tick);
    let ticket = number.prop_map(Ticket);
    let reason = prop::sample::select(vec![
        ReleaseReason::Completed,
        ReleaseReason::Aborted,
        ReleaseReason::Voluntary,
    ]);
    // Records name a holder by its id.
    let by = holder.clone().prop_filter("an id", |by| is_stored_verbatim(by.as_str()));
    let renewed = (fence.clone(), tick.clone(), tick.clone(), span())
        .prop_map(|(lease, at, expires_at, ttl)| Event::Renewed { lease, at, expires_at, ttl });
    let released = (fence.clone(), tick.clone(), by, reason)
        .prop_map(|(lease, at, by, reason)| Event::Released { lease, at, by, reason });
    let expired = (fence.clone(), tick.clone()).prop_map(|(lease, at)| Event::Expired { lease, at });
    let revoked = (fence.clone(), tick.clone(), cause(), principal.clone(), any::<String>()).prop_map(
        |(lease, at, cause, by, detail)| Event::Revoked { lease, at, cause, by, detail: detail.into() },
    );
    let wait_ended = (ticket.clone(), tick.clone(), wait_end()).prop_map(|(ticket, at, end)| Event::Left {
        ticket,
        at,
        end,
    });
    let marked = (tick.clone(), reading()).prop_map(|(at, reading)| Event::Marked { at, reading });
    let resumed = (tick.clone(), reading(), any::<u64>(), any::<u64>()).prop_map(
        |(at, reading, wall_anchor, wall_clock)| Event::Resumed { at, reading, wall_anchor, wall_clock },
    );
    let restored = (tick.clone(), any::<u64>(), fence.clone(), tick.clone())
        .prop_map(|(at, epoch, fence, hold_until)| Event::Restored { at, epoch, fence, hold_until });
    prop_oneof![
        8 => issued(&resource, &holder, &principal, &fence, &tick, &ticket),
        3 => renewed,
        2 => released,
        3 => expired,
        2 => revoked,
        6 => queued(&resource, &holder, &principal, &tick, &ticket),
        2 => wait_ended,
        1 => marked,
        1 => resumed,
        1 => restored,
        6 => intent_session_event(&holder, &principal, fence.clone(), tick.clone()),
        8 => file_event(&resource, &holder, fence.clone(), tick.clone(), ticket.clone()),
        4 => work_event(&holder, &principal, fence, tick),
    ]
    .boxed()
}

/// A step of a session, and an intent that can be wanted.
fn intent_session_event(
    holder: &Of<Holder>,
    principal: &Of<Principal>,
    fence: impl Strategy<Value = Fence> + 'static,
    tick: impl Strategy<Value = Tick> + Clone + 'static,
) -> Of<Event> {
    let of = (holder.clone(), tick.clone());
    let key = (0..3_u8).prop_map(|byte| IntentKey([byte; 32]));
    let accepted = (of.clone(), intent(), key, principal.clone(), tick).prop_map(
        |((session, at), intent, key, principal, start_by)| {
            IntentEvent::Accepted(IntentAcceptance { session, intent, key, principal, at, start_by })
        },
    );
    let slot = prop::option::of(prop_oneof![4 => 0..3_u32, 1 => any::<u32>()]);
    let starting =
        (of.clone(), holder.clone(), fence, slot).prop_map(|((session, at), worker, guard, slot)| {
            IntentEvent::Starting { session, at, worker, leader: guard, slot }
        });
    let running = (of.clone(), text()).prop_map(|((session, at), process)| IntentEvent::Running {
        session,
        at,
        process: process.into(),
    });
    let stop = (of.clone(), principal.clone()).prop_map(|((session, at), by)| IntentEvent::Stopping {
        session,
        at,
        by,
    });
    let end = prop::sample::select(&IntentSessionEnd::ALL[..]);
    let ended = (of, end, text()).prop_map(|((session, at), end, detail)| IntentEvent::Ended {
        session,
        at,
        end,
        detail: detail.into(),
    });
    prop_oneof![3 => accepted, 3 => starting, 1 => running, 1 => stop, 1 => ended]
        .prop_map(|event| Event::Intent(Box::new(event)))
        .boxed()
}

fn intent() -> impl Strategy<Value = Intent> {
    let target = prop_oneof![
        2 => "[a-c]".prop_map(|service| IntentTarget::Service(service.into())),
        1 => ("[a-c]", 0..3_000_u64).prop_map(|(id, start_ms)| IntentTarget::Recording { id: id.into(), start_ms }),
        1 => "[a-zé:]{1,200}".prop_map(|service| IntentTarget::Service(service.into())),
    ];
    (target, "[a-z]{1,8}", any::<String>(), text()).prop_map(|(target, profile, params, correlation)| {
        Intent { target, profile: profile.into(), params: params.into(), correlation: correlation.into() }
    })
}

fn text() -> impl Strategy<Value = String> {
    "[a-zé ]{0,20}"
}

fn issued(
    resource: &Of<Resource>,
    holder: &Of<Holder>,
    principal: &Of<Principal>,
    fence: &(impl Strategy<Value = Fence> + Clone + 'static),
    tick: &(impl Strategy<Value = Tick> + Clone + 'static),
    ticket: &(impl Strategy<Value = Ticket> + Clone + 'static),
) -> Of<Event> {
    let lease = (resource.clone(), holder.clone(), principal.clone(), mode());
    let when = (tick.clone(), tick.clone(), span());
    let of = (prop::option::weighted(0.3, ticket.clone()), prop::option::weighted(0.1, fence.clone()));
    let build =
        |(fence, (resource, holder, principal, mode), (at, expires_at, ttl), (labels, nonce), key, of)| {
            let (ticket, continues): (Option<Ticket>, Option<Fence>) = of;
            Event::Issued(IssuedLease {
                fence,
                resource,
                holder,
                principal,
                terms: LeaseTerms { mode, issued_at: at, expires_at, ttl, renewals: 0, nonce, labels },
                key,
                // 0 stands for none in what is stored, and is never given out.
                ticket: ticket.filter(|ticket| *ticket != Ticket(0)),
                continues: continues.filter(|fence| *fence != Fence(0)),
                authority: None,
            })
        };
    (fence.clone(), lease, when, (labels(), nonce()), key(), of).prop_map(build).boxed()
}

fn queued(
    resource: &Of<Resource>,
    holder: &Of<Holder>,
    principal: &Of<Principal>,
    tick: &(impl Strategy<Value = Tick> + Clone + 'static),
    ticket: &(impl Strategy<Value = Ticket> + Clone + 'static),
) -> Of<Event> {
    let alternatives = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(resource.clone(), 1..3)];
    let request = (resource.clone(), alternatives, mode(), span(), nonce(), labels()).prop_map(
        |(resource, alternatives, mode, ttl, nonce, labels)| {
            LeaseRequest::new(resource, mode, ttl, nonce).with_alternatives(alternatives).with_labels(labels)
        },
    );
    let requests = prop::collection::vec(request, 0..4);
    (ticket.clone(), holder.clone(), principal.clone(), requests, tick.clone(), tick.clone(), key())
        .prop_map(|(ticket, holder, principal, requests, at, until, key)| {
            Event::Queued(QueuedAcquire { ticket, holder, principal, requests, at, until, key })
        })
        .boxed()
}

fn span() -> Of<TickDuration> {
    prop_oneof![20 => 1..20_u64, 1 => Just(0), 1 => any::<u64>()].prop_map(TickDuration).boxed()
}

fn key() -> Of<Option<IdempotencyKey>> {
    let digest = || (0..2_u8).prop_map(|byte| RequestDigest([byte; 16]));
    prop::option::weighted(0.3, (digest(), digest()).prop_map(|(key, body)| IdempotencyKey { key, body }))
        .boxed()
}

fn nonce() -> Of<Nonce> {
    any::<[u8; 16]>().prop_map(Nonce).boxed()
}

fn labels() -> Of<Labels> {
    let pairs = prop::collection::btree_map("[a-zé]{1,8}", "[a-z é]{0,8}", 0..3);
    let parse = |pairs: std::collections::BTreeMap<String, String>| {
        Labels::parse(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))).expect("labels")
    };
    prop_oneof![3 => Just(Labels::default()), 1 => pairs.prop_map(parse)].boxed()
}

fn reading() -> impl Strategy<Value = ClockReading> {
    (any::<String>(), any::<u64>())
        .prop_map(|(clock, microseconds)| ClockReading { clock: clock.into(), microseconds })
}
