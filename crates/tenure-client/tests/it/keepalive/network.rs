//! A keeper and a registrar that knows when the lease is over, with a network in between.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tenure_client::{AttemptId, Effect, Input, KeepAlive, KeepAliveRequest, ReplyOutcome};
use tenure_core::kernel::{Fence, TickDuration};

use crate::keepalive::random::proptest_config;

const FENCE: Fence = Fence(7);

/// What becomes of one message and of its answer.
#[derive(Debug, Clone, Copy)]
struct Delivery {
    there: u64,
    back: u64,
    lost: bool,
    answer_lost: bool,
    answered_twice: bool,
    random: u64,
}

enum ScheduledEvent {
    Arrives { attempt: AttemptId, call: KeepAliveRequest, delivery: Delivery },
    Replied { attempt: AttemptId, outcome: ReplyOutcome, random: u64 },
}

/// One lease at a registrar whose clock is the true one.
#[derive(Default)]
struct SimulatedLease {
    expires_at: Option<u64>,
    released: bool,
}

struct SimulatedLink {
    keep_alive: KeepAlive,
    lease: SimulatedLease,
    ttl: u64,
    now: u64,
    event_queue: BTreeMap<(u64, u64), ScheduledEvent>,
    next_sequence: u64,
    messages: usize,
    deliveries: Vec<Delivery>,
    lost: bool,
    held: bool,
}

impl SimulatedLease {
    fn is_active(&self, now: u64) -> bool {
        !self.released && self.expires_at.is_some_and(|end| now < end)
    }

    fn handle_request(&mut self, call: KeepAliveRequest, now: u64, ttl: u64) -> Option<ReplyOutcome> {
        match call {
            KeepAliveRequest::Acquire if self.expires_at.is_none() && !self.released => {
                self.expires_at = Some(now + ttl)
            }
            KeepAliveRequest::Renew(_) if self.is_active(now) => {
                self.expires_at = self.expires_at.max(Some(now + ttl))
            }
            KeepAliveRequest::Release(_) => {
                self.released = true;
                return Some(ReplyOutcome::Ended);
            }
            KeepAliveRequest::Withdraw => return None,
            KeepAliveRequest::Acquire | KeepAliveRequest::Renew(_) => {}
        }
        let remaining = self.expires_at.filter(|_| self.is_active(now)).map(|end| end - now);
        Some(remaining.map_or(ReplyOutcome::Ended, |remaining| ReplyOutcome::Valid {
            fence: FENCE,
            valid_for: TickDuration(remaining),
        }))
    }
}

impl SimulatedLink {
    fn new(ttl: u64, deliveries: Vec<Delivery>) -> Self {
        Self {
            keep_alive: KeepAlive::new(TickDuration(ttl)),
            lease: SimulatedLease::default(),
            ttl,
            now: 0,
            event_queue: BTreeMap::new(),
            next_sequence: 0,
            messages: 0,
            deliveries,
            lost: false,
            held: false,
        }
    }

    fn schedule(&mut self, at: u64, next: ScheduledEvent) {
        self.next_sequence += 1;
        self.event_queue.insert((at, self.next_sequence), next);
    }

    fn step(&mut self, input: Input, random: u64) {
        for effect in self.keep_alive.step(input, self.now, random) {
            match effect {
                Effect::Send { request_id: attempt, request: call } => {
                    let delivery = self.deliveries[self.messages % self.deliveries.len()];
                    self.messages += 1;
                    if !delivery.lost {
                        self.schedule(
                            self.now + delivery.there,
                            ScheduledEvent::Arrives { attempt, call, delivery },
                        );
                    }
                }
                Effect::Lost | Effect::Refused => self.lost = true,
                Effect::Held(_) => self.held = true,
            }
        }
    }

    /// Runs until `end`; the keeper's timer rings `late` after its time.
    fn run_until(&mut self, end: u64, late: u64) {
        self.step(Input::Start, 0);
        while self.now < end {
            let timer = self.keep_alive.wake_at().map(|at| at.max(self.now) + late);
            let next = self.event_queue.keys().next().map(|(at, _)| *at);
            let Some(at) = timer.into_iter().chain(next).min() else { break };
            self.now = at;
            if next == Some(at) {
                let (_, next) = self.event_queue.pop_first().expect("it was there");
                self.handle_event(next);
            } else {
                self.step(Input::Woken, at);
            }
            self.check();
        }
    }

    fn handle_event(&mut self, next: ScheduledEvent) {
        match next {
            ScheduledEvent::Arrives { attempt, call, delivery } => {
                let Some(outcome) = self.lease.handle_request(call, self.now, self.ttl) else { return };
                for times in 1..=if delivery.answered_twice { 2 } else { 1 } {
                    if !delivery.answer_lost {
                        let random = delivery.random;
                        self.schedule(
                            self.now + times * delivery.back,
                            ScheduledEvent::Replied { attempt, outcome, random },
                        );
                    }
                }
            }
            ScheduledEvent::Replied { attempt, outcome, random } => {
                self.step(Input::Replied { request_id: attempt, outcome }, random);
            }
        }
    }

    /// Believed is held: at this very instant and at the last one of the belief.
    fn check(&self) {
        let end = self.lease.expires_at.unwrap_or(0);
        for at in [self.now, end.max(self.now)] {
            let believed = self.keep_alive.held_fence(at).is_some();
            assert!(!believed || (self.lease.is_active(at)), "believed at {at}, over at {end}");
        }
    }
}

fn delivery(longest: u64, unlucky: bool) -> impl Strategy<Value = Delivery> {
    let luck = if unlucky { 0.25 } else { 0.0 };
    let flip = move || proptest::bool::weighted(luck);
    (0..=longest, 0..=longest, flip(), flip(), flip(), any::<u64>()).prop_map(
        |(there, back, lost, answer_lost, answered_twice, random)| Delivery {
            there,
            back,
            lost,
            answer_lost,
            answered_twice,
            random,
        },
    )
}

/// A connection whose answers come within a tenth of the lease.
fn healthy_network() -> impl Strategy<Value = (u64, Vec<Delivery>)> {
    (1_000_000..60_000_000_u64)
        .prop_flat_map(|ttl| (Just(ttl), proptest::collection::vec(delivery(ttl / 20, false), 3..40)))
}

/// One on which anything may happen, delays of twice the lease among it.
fn hostile_network() -> impl Strategy<Value = (u64, Vec<Delivery>)> {
    (1_000_000..10_000_000_u64)
        .prop_flat_map(|ttl| (Just(ttl), proptest::collection::vec(delivery(2 * ttl, true), 1..40)))
}

proptest! {
    #![proptest_config(proptest_config())]

    #[test]
    fn healthy_connection_does_not_lose_the_lease(
        (ttl, deliveries) in healthy_network(),
        late in 0..20_000_u64,
    ) {
        let mut link = SimulatedLink::new(ttl, deliveries);
        link.run_until(20 * ttl, late);
        prop_assert!(link.held && !link.lost);
        prop_assert!(link.messages <= 600, "{} messages", link.messages);
    }

    #[test]
    fn losing_one_message_in_three_does_not_lose_the_lease(
        (ttl, mut deliveries) in healthy_network(),
        late in 0..20_000_u64,
    ) {
        deliveries.truncate(deliveries.len() / 3 * 3);
        deliveries.iter_mut().skip(1).step_by(3).for_each(|delivery| delivery.lost = true);
        let mut link = SimulatedLink::new(ttl, deliveries);
        link.run_until(20 * ttl, late);
        prop_assert!(link.held && !link.lost);
    }

    #[test]
    fn expired_lease_is_never_held_on_a_hostile_network(
        (ttl, deliveries) in hostile_network(),
        late in 0..3_000_000_u64,
    ) {
        SimulatedLink::new(ttl, deliveries).run_until(20 * ttl, late);
    }
}
