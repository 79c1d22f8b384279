//! Heartbeats of one held manifest as a step function, and whether the agent may still rely on its leases.

use tenure_core::kernel::{Fence, TickDuration};

use super::CheckError;
use crate::hold::LeaseLost;
use crate::keepalive::{AttemptId, Effect, Input, KeepAlive, ReplyOutcome};

/// How the claim stands, as far as anybody knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HoldStatus {
    /// While nothing else is known, the agent works until then.
    pub(super) confirmed_until: u64,
    /// The local deadline. From then on somebody else may have it.
    pub(super) deadline: u64,
    /// The last heartbeat did not get through.
    pub(super) is_failing: bool,
    /// It does not come back.
    pub(super) lost: Option<LeaseLost>,
}

impl HoldStatus {
    /// Whether the agent may go on at `now`.
    pub(super) fn check(&self, now: u64) -> Result<(), CheckError> {
        match &self.lost {
            Some(lost) => Err(CheckError::Lost(lost.clone())),
            None if now >= self.deadline => Err(CheckError::Lost(LeaseLost::DeadlinePassed)),
            None if self.is_failing || now >= self.confirmed_until => Err(CheckError::Paused),
            None => Ok(()),
        }
    }

    /// When the answer changes by itself after `now`.
    pub(super) fn changes_at(&self, now: u64) -> u64 {
        if now < self.confirmed_until { self.confirmed_until } else { self.deadline }
    }
}

/// Keeps all leases of a claim by the same rules as a single lease, and is more careful: what is not answered in time is not
/// sure any more.
pub(super) struct AgentHeartbeat {
    keep_alive: KeepAlive,
    /// Taken off for clocks that do not agree.
    skew: TickDuration,
    /// Before the deadline, so much is not sure any more: by then a heartbeat should have been answered.
    unconfirmed_margin: u64,
    /// The latest heartbeat that was answered well. One that was sent before it has nothing more to say.
    latest_confirmed: AttemptId,
    status: HoldStatus,
}

impl AgentHeartbeat {
    pub(super) fn new(ttl: TickDuration, skew: TickDuration) -> Self {
        let status = HoldStatus { confirmed_until: 0, deadline: 0, is_failing: false, lost: None };
        Self {
            keep_alive: KeepAlive::new(ttl),
            skew,
            unconfirmed_margin: 0,
            latest_confirmed: AttemptId(0),
            status,
        }
    }

    /// The leases were granted in answer to what was sent at `sent`. `fence` is the first one's, which stands for all.
    pub(super) fn start(
        &mut self,
        fence: Fence,
        valid_for: TickDuration,
        sent: u64,
        now: u64,
        random: u64,
    ) -> Vec<Effect> {
        // As if the keeper had asked itself.
        let effects = self.keep_alive.step(Input::Start, sent, random);
        let attempt = effects.iter().find_map(|effect| match effect {
            Effect::Send { request_id: attempt, .. } => Some(*attempt),
            _ => None,
        });
        attempt
            .map(|attempt| self.handle_reply(attempt, ReplyOutcome::Valid { fence, valid_for }, now, random))
            .unwrap_or_default()
    }

    /// A heartbeat or a release was answered. `Valid` means that all leases live, for so long at the least.
    pub(super) fn handle_reply(
        &mut self,
        attempt: AttemptId,
        outcome: ReplyOutcome,
        now: u64,
        random: u64,
    ) -> Vec<Effect> {
        let outcome = match outcome {
            ReplyOutcome::Valid { fence, valid_for } => {
                // More than half of it would leave too little to work in.
                let skew = self.skew.0.min(valid_for.0 / 2);
                let valid_for = TickDuration(valid_for.0 - skew);
                if attempt > self.latest_confirmed {
                    self.latest_confirmed = attempt;
                    self.status.is_failing = false;
                    self.unconfirmed_margin = valid_for.0 / 2;
                }
                ReplyOutcome::Valid { fence, valid_for }
            }
            ReplyOutcome::Failed => {
                self.status.is_failing |= attempt > self.latest_confirmed;
                outcome
            }
            other => other,
        };
        self.step(Input::Replied { request_id: attempt, outcome }, now, random)
    }

    pub(super) fn step(&mut self, input: Input, now: u64, random: u64) -> Vec<Effect> {
        let effects = self.keep_alive.step(input, now, random);
        if let Some(until) = self.keep_alive.deadline() {
            self.status.deadline = until;
            self.status.confirmed_until = until.saturating_sub(self.unconfirmed_margin);
        }
        if effects.contains(&Effect::Lost) {
            self.status.lost.get_or_insert(LeaseLost::DeadlinePassed);
        }
        effects
    }

    /// The server said how a lease ended.
    pub(super) fn record_end(&mut self, how: String) {
        self.status.lost.get_or_insert(LeaseLost::Ended { end: how });
    }

    pub(super) fn status(&self) -> &HoldStatus {
        &self.status
    }

    pub(super) fn wake_at(&self) -> Option<u64> {
        self.keep_alive.wake_at()
    }

    /// Nothing is left to be said.
    pub(super) fn is_done(&self) -> bool {
        self.keep_alive.is_done()
    }
}
