//! A keeper whose clock is in milliseconds and whose messages go nowhere until the story answers them.

use tenure_client::{Attempt, Call, Effect, Input, Keeper, Outcome};
use tenure_core::kernel::{Fence, Span};

pub const FENCE: Fence = Fence(7);

pub struct Story {
    pub keeper: Keeper,
    /// What spreads clients out, from now on.
    pub random: u64,
}

impl Story {
    pub fn new(ttl: Span) -> Self {
        Self { keeper: Keeper::new(ttl), random: 0 }
    }

    /// Held from time 0 on, for the whole of its length, by the answer to attempt 1.
    pub fn held(ttl: Span) -> Self {
        let mut story = Self::new(ttl);
        assert_eq!(story.at(0, Input::Start), [send(1, Call::Acquire)]);
        assert_eq!(story.at(0, valid(1, ttl.as_millis())), [Effect::Held(FENCE)]);
        story
    }

    pub fn at(&mut self, milliseconds: u64, input: Input) -> Vec<Effect> {
        self.keeper.step(input, milliseconds * 1_000, self.random)
    }

    pub fn believes_at(&self, milliseconds: u64) -> bool {
        self.keeper.believes(milliseconds * 1_000).is_some()
    }

    /// Follows the keeper's timer up to and including `milliseconds`, with nobody answering. Gives the times
    /// of what was sent.
    pub fn unanswered_until(&mut self, milliseconds: u64) -> Vec<(u64, Call)> {
        let mut sent = Vec::new();
        let mut last = None;
        while let Some(at) = self.keeper.wake_at().filter(|at| *at <= milliseconds * 1_000) {
            assert!(last.is_none_or(|last| at > last), "woken twice at {at}");
            last = Some(at);
            for effect in self.keeper.step(Input::Woken, at, self.random) {
                if let Effect::Send { call, .. } = effect {
                    sent.push((at / 1_000, call));
                }
            }
        }
        sent
    }
}

pub fn valid(attempt: u64, milliseconds: u64) -> Input {
    valid_as(FENCE, attempt, milliseconds)
}

pub fn valid_as(fence: Fence, attempt: u64, milliseconds: u64) -> Input {
    replied(attempt, Outcome::Valid { fence, valid_for: Span::from_millis(milliseconds) })
}

pub fn replied(attempt: u64, outcome: Outcome) -> Input {
    Input::Replied { attempt: Attempt(attempt), outcome }
}

pub fn send(attempt: u64, call: Call) -> Effect {
    Effect::Send { attempt: Attempt(attempt), call }
}
