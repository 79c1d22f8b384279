//! The heartbeats of one claim as a step function, and how far the agent may believe in it.

use tenure_core::kernel::{Fence, Span};

use super::failure::Doubt;
use crate::hold::Lost;
use crate::keeper::{Attempt, Effect, Input, Keeper, Outcome};

/// How the claim stands, as far as anybody knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    /// While nothing else is known, the agent works until then.
    pub(super) sure_until: u64,
    /// The local deadline. From then on somebody else may have it.
    pub(super) until: u64,
    /// The last heartbeat did not get through.
    pub(super) is_failing: bool,
    /// It does not come back.
    pub(super) lost: Option<Lost>,
}

impl Standing {
    /// Whether the agent may go on at `now`.
    pub(super) fn check(&self, now: u64) -> Result<(), Doubt> {
        match &self.lost {
            Some(lost) => Err(Doubt::Lost(lost.clone())),
            None if now >= self.until => Err(Doubt::Lost(Lost::TimeUp)),
            None if self.is_failing || now >= self.sure_until => Err(Doubt::Paused),
            None => Ok(()),
        }
    }

    /// When the answer changes by itself after `now`.
    pub(super) fn changes_at(&self, now: u64) -> u64 {
        if now < self.sure_until { self.sure_until } else { self.until }
    }
}

/// Keeps all leases of a claim by the same rules as a single lease, and is more careful: what is not answered in time is not
/// sure any more.
pub(super) struct Pulse {
    keeper: Keeper,
    /// Taken off for clocks that do not agree.
    skew: Span,
    /// Before the deadline, so much is not sure any more: by then a heartbeat should have been answered.
    doubtful: u64,
    /// The latest heartbeat that was answered well. One that was sent before it has nothing more to say.
    latest: Attempt,
    standing: Standing,
}

impl Pulse {
    pub(super) fn new(ttl: Span, skew: Span) -> Self {
        let standing = Standing { sure_until: 0, until: 0, is_failing: false, lost: None };
        Self { keeper: Keeper::new(ttl), skew, doubtful: 0, latest: Attempt(0), standing }
    }

    /// The leases were granted in answer to what was sent at `sent`. `fence` is the first one's, which stands for all.
    pub(super) fn begin(
        &mut self,
        fence: Fence,
        valid_for: Span,
        sent: u64,
        now: u64,
        random: u64,
    ) -> Vec<Effect> {
        // As if the keeper had asked itself.
        let asked = self.keeper.step(Input::Start, sent, random);
        let attempt = asked.iter().find_map(|effect| match effect {
            Effect::Send { attempt, .. } => Some(*attempt),
            _ => None,
        });
        attempt
            .map(|attempt| self.heard(attempt, Outcome::Valid { fence, valid_for }, now, random))
            .unwrap_or_default()
    }

    /// A heartbeat or a release was answered. `Valid` means that all leases live, for so long at the least.
    pub(super) fn heard(&mut self, attempt: Attempt, outcome: Outcome, now: u64, random: u64) -> Vec<Effect> {
        let outcome = match outcome {
            Outcome::Valid { fence, valid_for } => {
                // More than half of it would leave too little to work in.
                let skew = self.skew.0.min(valid_for.0 / 2);
                let valid_for = Span(valid_for.0 - skew);
                if attempt > self.latest {
                    self.latest = attempt;
                    self.standing.is_failing = false;
                    self.doubtful = valid_for.0 / 2;
                }
                Outcome::Valid { fence, valid_for }
            }
            Outcome::Failed => {
                self.standing.is_failing |= attempt > self.latest;
                outcome
            }
            other => other,
        };
        self.step(Input::Replied { attempt, outcome }, now, random)
    }

    pub(super) fn step(&mut self, input: Input, now: u64, random: u64) -> Vec<Effect> {
        let effects = self.keeper.step(input, now, random);
        if let Some(until) = self.keeper.believed_until() {
            self.standing.until = until;
            self.standing.sure_until = until.saturating_sub(self.doubtful);
        }
        if effects.contains(&Effect::Lost) {
            self.standing.lost.get_or_insert(Lost::TimeUp);
        }
        effects
    }

    /// The server said how a lease ended.
    pub(super) fn ended(&mut self, how: String) {
        self.standing.lost.get_or_insert(Lost::Ended { how });
    }

    pub(super) fn standing(&self) -> &Standing {
        &self.standing
    }

    pub(super) fn wake_at(&self) -> Option<u64> {
        self.keeper.wake_at()
    }

    /// Nothing is left to be said.
    pub(super) fn is_done(&self) -> bool {
        self.keeper.is_done()
    }
}
