//! Keeps one lease: asks, renews in good time, and stops believing before anybody else can hold it.

use tenure_core::kernel::{Fence, Span};

use crate::belief::believed_until;

/// Which of the keeper's messages a reply belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(pub u64);

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Ask for the lease.
    Start,
    /// A reply came.
    Replied {
        /// To which message.
        attempt: Attempt,
        /// What it says.
        outcome: Outcome,
    },
    /// The time that [`Keeper::wake_at`] named has come.
    Woken,
    /// Give the lease back.
    Stop,
}

/// What a reply says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The lease is ours, or still is.
    Valid {
        /// Its number.
        fence: Fence,
        /// How long it lived on from when the message arrived.
        valid_for: Span,
    },
    /// We wait in the queue; the lease comes with a later reply to the same message.
    Queued,
    /// No: held by somebody else, or refused for good.
    Refused,
    /// The lease is over.
    Over,
    /// Nobody knows what happened: no connection, or the server cannot say. Try again.
    Failed,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Send a message. Every acquire of one keeper carries the same idempotency key.
    Send {
        /// For the reply.
        attempt: Attempt,
        /// What to ask.
        call: Call,
    },
    /// The lease is held from now on.
    Held(Fence),
    /// The lease is no longer held: stop what it protects, now. It does not come back.
    Lost,
    /// The lease was not to be had.
    Refused,
}

/// What to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Grant it.
    Acquire,
    /// Keep it alive.
    Renew(Fence),
    /// Take it back.
    Release(Fence),
}

/// One lease that is wanted, held, or over. It goes through these once.
#[derive(Debug)]
pub struct Keeper {
    ttl: Span,
    phase: Phase,
    /// When each message that may still be answered was sent.
    sent: Vec<(Attempt, u64)>,
    last_attempt: Attempt,
    /// How many messages in a row were not answered.
    failures: u32,
    /// When to send the next message.
    next_send: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Wanted,
    /// Granted, but `until` was over when we heard of it: renewed first, believed then.
    Stale {
        fence: Fence,
    },
    Held {
        fence: Fence,
        until: u64,
    },
    Over,
}

/// A reply to a message older than this many is not worth waiting for.
const REMEMBERED: usize = 16;

impl Keeper {
    /// A keeper for a lease of this length.
    pub fn new(ttl: Span) -> Self {
        Self {
            ttl,
            phase: Phase::Wanted,
            sent: Vec::new(),
            last_attempt: Attempt(0),
            failures: 0,
            next_send: None,
        }
    }

    /// The lease's fence, if it is surely held at `now` on the local clock. Ask right before each effect on
    /// what the lease protects.
    pub fn believes(&self, now: u64) -> Option<Fence> {
        match self.phase {
            Phase::Held { fence, until } if now < until => Some(fence),
            _ => None,
        }
    }

    /// Whether nothing more will come of this keeper.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// When the local clock should wake the keeper.
    pub fn wake_at(&self) -> Option<u64> {
        let until = match self.phase {
            Phase::Held { until, .. } => Some(until),
            _ => None,
        };
        self.next_send.into_iter().chain(until).min()
    }

    /// Takes one step at `now` on the local clock, in microseconds. `random` spreads many clients out.
    pub fn step(&mut self, input: Input, now: u64, random: u64) -> Vec<Effect> {
        let mut effects = self.stop_believing(now);
        match input {
            Input::Start if self.phase == Phase::Wanted => {
                effects.push(self.send(Call::Acquire, now, random))
            }
            Input::Start => {}
            Input::Replied { attempt, outcome } => {
                effects.extend(self.replied(attempt, outcome, now, random))
            }
            Input::Woken => effects.extend(self.send_if_due(now, random)),
            Input::Stop => effects.extend(self.stop(now)),
        }
        effects
    }

    fn stop_believing(&mut self, now: u64) -> Vec<Effect> {
        match self.phase {
            Phase::Held { fence, until } if now >= until => {
                self.end();
                // Perhaps it lives on without us, and somebody waits for it.
                vec![Effect::Lost, self.message(Call::Release(fence), now)]
            }
            _ => Vec::new(),
        }
    }

    fn replied(&mut self, attempt: Attempt, outcome: Outcome, now: u64, random: u64) -> Vec<Effect> {
        let Some(sent) = self.sent.iter().find(|(other, _)| *other == attempt).map(|(_, sent)| *sent) else {
            return Vec::new();
        };
        match (outcome, self.phase) {
            (Outcome::Valid { fence, .. }, Phase::Over) => {
                // We gave up before the answer came; nobody should have to wait for its end.
                self.sent.clear();
                vec![self.message(Call::Release(fence), now)]
            }
            (Outcome::Valid { fence, valid_for }, _) => self.valid(fence, sent, valid_for, now, random),
            (_, Phase::Over) => Vec::new(),
            (Outcome::Queued, _) => {
                // The answer comes by itself; asking again only guards against a lost connection.
                self.failures = 0;
                self.next_send = Some(now.saturating_add(Span::from_secs(10).0));
                Vec::new()
            }
            (Outcome::Failed, _) => {
                self.failures = self.failures.saturating_add(1);
                let pause = random % (self.pause() + 1);
                self.next_send = Some(now.saturating_add(pause));
                Vec::new()
            }
            (Outcome::Refused | Outcome::Over, Phase::Held { .. }) => {
                self.end();
                vec![Effect::Lost]
            }
            (Outcome::Refused | Outcome::Over, _) => {
                self.end();
                vec![Effect::Refused]
            }
        }
    }

    fn valid(&mut self, fence: Fence, sent: u64, valid_for: Span, now: u64, random: u64) -> Vec<Effect> {
        self.failures = 0;
        // Whatever was sent before this message cannot say anything better.
        self.sent.retain(|(_, other)| *other > sent);
        let until = believed_until(sent, valid_for);
        match self.phase {
            Phase::Held { until: before, .. } => {
                self.phase = Phase::Held { fence, until: before.max(until) };
                self.renew_later(sent, random);
                Vec::new()
            }
            _ if now < until => {
                self.phase = Phase::Held { fence, until };
                self.renew_later(sent, random);
                vec![Effect::Held(fence)]
            }
            _ => {
                self.phase = Phase::Stale { fence };
                vec![self.send(Call::Renew(fence), now, random)]
            }
        }
    }

    fn send_if_due(&mut self, now: u64, random: u64) -> Vec<Effect> {
        if self.next_send.is_none_or(|at| now < at) {
            return Vec::new();
        }
        match self.phase {
            Phase::Wanted => vec![self.send(Call::Acquire, now, random)],
            Phase::Stale { fence } | Phase::Held { fence, .. } => {
                vec![self.send(Call::Renew(fence), now, random)]
            }
            Phase::Over => Vec::new(),
        }
    }

    fn stop(&mut self, now: u64) -> Vec<Effect> {
        let phase = self.phase;
        self.next_send = None;
        self.phase = Phase::Over;
        match phase {
            Phase::Stale { fence } | Phase::Held { fence, .. } => {
                vec![self.message(Call::Release(fence), now)]
            }
            // A grant may be on its way; the reply finds the keeper over, and gives it back.
            Phase::Wanted | Phase::Over => Vec::new(),
        }
    }

    /// Sends, and sends again if no answer comes.
    fn send(&mut self, call: Call, now: u64, random: u64) -> Effect {
        let patience = self.pause() + random % (self.pause() / 8 + 1);
        self.next_send = Some(now.saturating_add(patience));
        self.failures = self.failures.saturating_add(1);
        self.message(call, now)
    }

    fn message(&mut self, call: Call, now: u64) -> Effect {
        self.last_attempt = Attempt(self.last_attempt.0 + 1);
        if !matches!(call, Call::Release(_)) {
            self.sent.push((self.last_attempt, now));
        }
        if self.sent.len() > REMEMBERED {
            self.sent.remove(0);
        }
        Effect::Send { attempt: self.last_attempt, call }
    }

    /// A third of the lease after the last message that was answered, spread by a tenth of that.
    fn renew_later(&mut self, sent: u64, random: u64) {
        let third = self.ttl.0 / 3;
        let early = random % (third / 10 + 1);
        self.next_send = Some(sent.saturating_add(third - early));
    }

    /// How long to wait for an answer, or after a failure: longer each time, but never so long that the
    /// lease would be lost for want of a try.
    fn pause(&self) -> u64 {
        let first = Span::from_millis(100).0;
        let longest = (self.ttl.0 / 6).max(first);
        first.saturating_mul(1 << self.failures.min(16)).min(longest)
    }

    fn end(&mut self) {
        // What is still under way may yet be answered with a grant, which is then given back.
        self.phase = Phase::Over;
        self.next_send = None;
    }
}
