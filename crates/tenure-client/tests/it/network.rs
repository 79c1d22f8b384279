//! A keeper and a registrar that knows when the lease is over, with a network in between.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tenure_client::{Attempt, Call, Effect, Input, Keeper, Outcome};
use tenure_core::kernel::{Fence, Span};

use crate::random::config;

const FENCE: Fence = Fence(7);

/// What becomes of one message and of its answer.
#[derive(Debug, Clone, Copy)]
struct Fate {
    there: u64,
    back: u64,
    lost: bool,
    answer_lost: bool,
    answered_twice: bool,
    random: u64,
}

enum Next {
    Arrives { attempt: Attempt, call: Call, fate: Fate },
    Heard { attempt: Attempt, outcome: Outcome, random: u64 },
}

/// One lease at a registrar whose clock is the true one.
#[derive(Default)]
struct Lease {
    expires_at: Option<u64>,
    released: bool,
}

struct Link {
    keeper: Keeper,
    lease: Lease,
    ttl: u64,
    now: u64,
    agenda: BTreeMap<(u64, u64), Next>,
    planned: u64,
    messages: usize,
    fates: Vec<Fate>,
    lost: bool,
    held: bool,
}

impl Lease {
    fn lives(&self, now: u64) -> bool {
        !self.released && self.expires_at.is_some_and(|end| now < end)
    }

    fn asked(&mut self, call: Call, now: u64, ttl: u64) -> Option<Outcome> {
        match call {
            Call::Acquire if self.expires_at.is_none() && !self.released => self.expires_at = Some(now + ttl),
            Call::Renew(_) if self.lives(now) => self.expires_at = self.expires_at.max(Some(now + ttl)),
            Call::Release(_) => {
                self.released = true;
                return Some(Outcome::Over);
            }
            Call::Withdraw => return None,
            Call::Acquire | Call::Renew(_) => {}
        }
        let left = self.expires_at.filter(|_| self.lives(now)).map(|end| end - now);
        Some(left.map_or(Outcome::Over, |left| Outcome::Valid { fence: FENCE, valid_for: Span(left) }))
    }
}

impl Link {
    fn new(ttl: u64, fates: Vec<Fate>) -> Self {
        Self {
            keeper: Keeper::new(Span(ttl)),
            lease: Lease::default(),
            ttl,
            now: 0,
            agenda: BTreeMap::new(),
            planned: 0,
            messages: 0,
            fates,
            lost: false,
            held: false,
        }
    }

    fn plan(&mut self, at: u64, next: Next) {
        self.planned += 1;
        self.agenda.insert((at, self.planned), next);
    }

    fn step(&mut self, input: Input, random: u64) {
        for effect in self.keeper.step(input, self.now, random) {
            match effect {
                Effect::Send { attempt, call } => {
                    let fate = self.fates[self.messages % self.fates.len()];
                    self.messages += 1;
                    if !fate.lost {
                        self.plan(self.now + fate.there, Next::Arrives { attempt, call, fate });
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
            let timer = self.keeper.wake_at().map(|at| at.max(self.now) + late);
            let next = self.agenda.keys().next().map(|(at, _)| *at);
            let Some(at) = timer.into_iter().chain(next).min() else { break };
            self.now = at;
            if next == Some(at) {
                let (_, next) = self.agenda.pop_first().expect("it was there");
                self.happen(next);
            } else {
                self.step(Input::Woken, at);
            }
            self.check();
        }
    }

    fn happen(&mut self, next: Next) {
        match next {
            Next::Arrives { attempt, call, fate } => {
                let Some(outcome) = self.lease.asked(call, self.now, self.ttl) else { return };
                for times in 1..=if fate.answered_twice { 2 } else { 1 } {
                    if !fate.answer_lost {
                        let random = fate.random;
                        self.plan(self.now + times * fate.back, Next::Heard { attempt, outcome, random });
                    }
                }
            }
            Next::Heard { attempt, outcome, random } => {
                self.step(Input::Replied { attempt, outcome }, random);
            }
        }
    }

    /// Believed is held: at this very instant and at the last one of the belief.
    fn check(&self) {
        let end = self.lease.expires_at.unwrap_or(0);
        for at in [self.now, end.max(self.now)] {
            let believed = self.keeper.believes(at).is_some();
            assert!(!believed || (self.lease.lives(at)), "believed at {at}, over at {end}");
        }
    }
}

fn fate(longest: u64, unlucky: bool) -> impl Strategy<Value = Fate> {
    let luck = if unlucky { 0.25 } else { 0.0 };
    let flip = move || proptest::bool::weighted(luck);
    (0..=longest, 0..=longest, flip(), flip(), flip(), any::<u64>()).prop_map(
        |(there, back, lost, answer_lost, answered_twice, random)| Fate {
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
fn healthy() -> impl Strategy<Value = (u64, Vec<Fate>)> {
    (1_000_000..60_000_000_u64)
        .prop_flat_map(|ttl| (Just(ttl), proptest::collection::vec(fate(ttl / 20, false), 3..40)))
}

/// One on which anything may happen, delays of twice the lease among it.
fn hostile() -> impl Strategy<Value = (u64, Vec<Fate>)> {
    (1_000_000..10_000_000_u64)
        .prop_flat_map(|ttl| (Just(ttl), proptest::collection::vec(fate(2 * ttl, true), 1..40)))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn healthy_connection_does_not_lose_the_lease((ttl, fates) in healthy(), late in 0..20_000_u64) {
        let mut link = Link::new(ttl, fates);
        link.run_until(20 * ttl, late);
        prop_assert!(link.held && !link.lost);
        prop_assert!(link.messages <= 600, "{} messages", link.messages);
    }

    #[test]
    fn losing_one_message_in_three_does_not_lose_the_lease((ttl, mut fates) in healthy(), late in 0..20_000_u64) {
        fates.truncate(fates.len() / 3 * 3);
        fates.iter_mut().skip(1).step_by(3).for_each(|fate| fate.lost = true);
        let mut link = Link::new(ttl, fates);
        link.run_until(20 * ttl, late);
        prop_assert!(link.held && !link.lost);
    }

    #[test]
    fn expired_lease_is_never_held_on_a_hostile_network(
        (ttl, fates) in hostile(),
        late in 0..3_000_000_u64,
    ) {
        Link::new(ttl, fates).run_until(20 * ttl, late);
    }
}
