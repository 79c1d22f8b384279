//! A keeper whose clock is in milliseconds and whose messages go nowhere until the story answers them.

use tenure_client::{AttemptId, Effect, Input, KeepAlive, KeepAliveRequest, ReplyOutcome};
use tenure_core::kernel::{Fence, TickDuration};

pub const FENCE: Fence = Fence(7);

pub struct KeepAliveHarness {
    pub keep_alive: KeepAlive,
    /// What spreads clients out, from now on.
    pub random: u64,
}

impl KeepAliveHarness {
    pub fn new(ttl: TickDuration) -> Self {
        Self { keep_alive: KeepAlive::new(ttl), random: 0 }
    }

    /// Held from time 0 on, for the whole of its length, by the answer to attempt 1.
    pub fn held(ttl: TickDuration) -> Self {
        let mut harness = Self::new(ttl);
        assert_eq!(harness.step_at(0, Input::Start), [send_effect(1, KeepAliveRequest::Acquire)]);
        assert_eq!(harness.step_at(0, valid_reply(1, ttl.as_millis())), [Effect::Held(FENCE)]);
        harness
    }

    pub fn step_at(&mut self, milliseconds: u64, input: Input) -> Vec<Effect> {
        self.keep_alive.step(input, milliseconds * 1_000, self.random)
    }

    pub fn is_held_at(&self, milliseconds: u64) -> bool {
        self.keep_alive.held_fence(milliseconds * 1_000).is_some()
    }

    /// Follows the keeper's timer up to and including `milliseconds`, with nobody answering. Gives the times
    /// of what was sent.
    pub fn run_unanswered_until(&mut self, milliseconds: u64) -> Vec<(u64, KeepAliveRequest)> {
        let mut sent = Vec::new();
        let mut last = None;
        while let Some(at) = self.keep_alive.wake_at().filter(|at| *at <= milliseconds * 1_000) {
            assert!(last.is_none_or(|last| at > last), "woken twice at {at}");
            last = Some(at);
            for effect in self.keep_alive.step(Input::Woken, at, self.random) {
                if let Effect::Send { request: call, .. } = effect {
                    sent.push((at / 1_000, call));
                }
            }
        }
        sent
    }
}

pub fn valid_reply(attempt: u64, milliseconds: u64) -> Input {
    valid_reply_for(FENCE, attempt, milliseconds)
}

pub fn valid_reply_for(fence: Fence, attempt: u64, milliseconds: u64) -> Input {
    reply(attempt, ReplyOutcome::Valid { fence, valid_for: TickDuration::from_millis(milliseconds) })
}

pub fn reply(attempt: u64, outcome: ReplyOutcome) -> Input {
    Input::Replied { request_id: AttemptId(attempt), outcome }
}

pub fn send_effect(attempt: u64, call: KeepAliveRequest) -> Effect {
    Effect::Send { request_id: AttemptId(attempt), request: call }
}
