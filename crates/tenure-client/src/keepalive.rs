//! Keeps one lease alive: acquires, renews in time, and reports the loss before another client can hold the lease.

use tenure_core::kernel::{Fence, TickDuration};

use crate::cleanup_requests::CleanupRequests;
use crate::clock::local_deadline;

/// Which of the keeper's messages a reply belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId(pub u64);

impl AttemptId {
    /// The next one, which this one becomes.
    fn advance(&mut self) -> Self {
        self.0 += 1;
        *self
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Ask for the lease.
    Start,
    /// A reply came.
    Replied {
        /// To which message.
        request_id: AttemptId,
        /// What it says.
        outcome: ReplyOutcome,
    },
    /// The time that [`KeepAlive::wake_at`] named has come.
    Woken,
    /// Give the lease back.
    Stop,
}

/// What a reply says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyOutcome {
    /// The lease is ours, or still is.
    Valid {
        /// Its number.
        fence: Fence,
        /// How long it lived on from when the message arrived.
        valid_for: TickDuration,
    },
    /// We wait in the queue; the lease comes with a later reply to the same message.
    Queued,
    /// No: held by somebody else, or refused for good.
    Refused,
    /// The lease is over.
    Ended,
    /// Nobody knows what happened: no connection, or the server cannot say. Try again.
    Failed,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Send a message. Every acquire of one keeper carries the same idempotency key.
    Send {
        /// For the reply.
        request_id: AttemptId,
        /// What to ask.
        request: KeepAliveRequest,
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
pub enum KeepAliveRequest {
    /// Grant it.
    Acquire,
    /// Keep it alive.
    Renew(Fence),
    /// Take it back.
    Release(Fence),
    /// Let us out of the queue, if we are in it. A lease that came first is answered as valid, and given back then.
    Withdraw,
}

/// One lease that is wanted, held, or over. It goes through these once.
#[derive(Debug)]
pub struct KeepAlive {
    ttl: TickDuration,
    phase: Phase,
    /// When each message that may still be answered was sent.
    sent: Vec<(AttemptId, u64)>,
    last_request_id: AttemptId,
    /// How many messages in a row were not answered.
    failures: u32,
    /// When to send the next message.
    next_send: Option<u64>,
    /// The lease that a release was sent for: once is enough.
    released: Option<Fence>,
    /// What is said until it is answered, when all is over.
    final_requests: CleanupRequests,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Acquiring,
    /// Granted, but `until` was over when we heard of it: renewed first, believed then.
    Stale {
        fence: Fence,
    },
    Held {
        fence: Fence,
        deadline: u64,
    },
    Ended,
}

/// A reply to a message older than this many is not worth waiting for.
const MAX_PENDING_REQUESTS: usize = 16;

const MIN_BACKOFF: TickDuration = TickDuration::from_millis(100);

/// However long the lease is, a server that is back should not have to wait longer for its clients.
const MAX_BACKOFF: TickDuration = TickDuration::from_secs(10);

impl KeepAlive {
    /// A keeper for a lease of this length.
    pub fn new(ttl: TickDuration) -> Self {
        Self {
            ttl,
            phase: Phase::Acquiring,
            sent: Vec::new(),
            last_request_id: AttemptId(0),
            failures: 0,
            next_send: None,
            released: None,
            final_requests: CleanupRequests::default(),
        }
    }

    /// The lease's fence, if it is surely held at `now` on the local clock. Ask right before each effect on
    /// what the lease protects.
    pub fn held_fence(&self, now: u64) -> Option<Fence> {
        match self.phase {
            Phase::Held { fence, deadline: until } if now < until => Some(fence),
            _ => None,
        }
    }

    /// When belief ends, while there is any: the local deadline.
    pub fn deadline(&self) -> Option<u64> {
        match self.phase {
            Phase::Held { deadline: until, .. } => Some(until),
            _ => None,
        }
    }

    /// Whether the lease is over or given up: it is not believed in, and never will be again.
    pub fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Whether it is over, and nothing is left to be said. A grant that is still under way is given back all the same,
    /// when its reply comes.
    pub fn is_done(&self) -> bool {
        self.has_ended() && self.final_requests.is_empty()
    }

    /// When the local clock should wake the keeper.
    pub fn wake_at(&self) -> Option<u64> {
        let farewell = self.final_requests.wake_at();
        self.next_send.into_iter().chain(self.deadline()).chain(farewell).min()
    }

    /// Takes one step at `now` on the local clock, in microseconds. `random` spreads many clients out.
    pub fn step(&mut self, input: Input, now: u64, random: u64) -> Vec<Effect> {
        let mut effects = self.end_if_expired(now);
        match input {
            Input::Start if self.phase == Phase::Acquiring => {
                effects.push(self.send(KeepAliveRequest::Acquire, now, random))
            }
            Input::Start => {}
            Input::Replied { request_id: attempt, outcome } => {
                effects.extend(self.handle_reply(attempt, outcome, now, random))
            }
            Input::Woken => {
                effects.extend(self.send_if_due(now, random));
                let last = &mut self.last_request_id;
                effects.extend(self.final_requests.take_due(now, || last.advance()));
            }
            Input::Stop => effects.extend(self.stop(now)),
        }
        effects
    }

    fn end_if_expired(&mut self, now: u64) -> Vec<Effect> {
        match self.phase {
            Phase::Held { fence, deadline: until } if now >= until => {
                self.end();
                // Perhaps it lives on without us, and somebody waits for it.
                let mut effects = vec![Effect::Lost];
                effects.extend(self.release(fence, now));
                effects
            }
            _ => Vec::new(),
        }
    }

    fn handle_reply(
        &mut self,
        attempt: AttemptId,
        outcome: ReplyOutcome,
        now: u64,
        random: u64,
    ) -> Vec<Effect> {
        if let Some(call) = self.final_requests.handle_reply(attempt, outcome, now, random) {
            return match outcome {
                // We were served before we could leave.
                ReplyOutcome::Valid { fence, .. } if call == KeepAliveRequest::Withdraw => {
                    self.release(fence, now)
                }
                _ => Vec::new(),
            };
        }
        let Some(sent) = self.sent.iter().find(|(other, _)| *other == attempt).map(|(_, sent)| *sent) else {
            return Vec::new();
        };
        match (outcome, self.phase) {
            // We gave up before the answer came; nobody should have to wait for its end.
            (ReplyOutcome::Valid { fence, .. }, Phase::Ended) => self.release(fence, now),
            (ReplyOutcome::Valid { fence, .. }, Phase::Held { fence: held, .. }) if fence != held => {
                // There can be another lease under our key only once ours is over.
                self.end();
                let mut effects = vec![Effect::Lost];
                effects.extend(self.release(fence, now));
                effects
            }
            (ReplyOutcome::Valid { fence, valid_for }, _) => {
                self.handle_valid(fence, sent, valid_for, now, random)
            }
            (_, Phase::Ended) => Vec::new(),
            (ReplyOutcome::Queued, Phase::Acquiring) => {
                // The answer comes by itself; asking again only guards against a lost connection, but soon
                // enough to find a lease that was granted unheard.
                self.failures = 0;
                self.next_send = Some(now.saturating_add(MAX_BACKOFF.0.min(self.ttl.0 / 3)));
                Vec::new()
            }
            // An older word: meanwhile our turn has come.
            (ReplyOutcome::Queued, Phase::Stale { .. } | Phase::Held { .. }) => Vec::new(),
            (ReplyOutcome::Failed, _) => {
                self.failures = self.failures.saturating_add(1);
                let again = now.saturating_add(random % (self.backoff() + 1));
                // Never later than planned: many failures of long ago must not put off the next try.
                self.next_send = Some(self.next_send.map_or(again, |planned| planned.min(again)));
                Vec::new()
            }
            (ReplyOutcome::Refused | ReplyOutcome::Ended, Phase::Held { .. }) => {
                self.end();
                vec![Effect::Lost]
            }
            (ReplyOutcome::Refused | ReplyOutcome::Ended, _) => {
                self.end();
                vec![Effect::Refused]
            }
        }
    }

    fn handle_valid(
        &mut self,
        fence: Fence,
        sent: u64,
        valid_for: TickDuration,
        now: u64,
        random: u64,
    ) -> Vec<Effect> {
        self.failures = 0;
        // Whatever was sent before this message cannot say anything better.
        self.sent.retain(|(_, other)| *other > sent);
        let until = local_deadline(sent, valid_for);
        match self.phase {
            Phase::Held { deadline: before, .. } => {
                self.phase = Phase::Held { fence, deadline: before.max(until) };
                self.schedule_renewal(sent, valid_for, random);
                Vec::new()
            }
            _ if now < until => {
                self.phase = Phase::Held { fence, deadline: until };
                self.schedule_renewal(sent, valid_for, random);
                vec![Effect::Held(fence)]
            }
            _ => {
                self.phase = Phase::Stale { fence };
                vec![self.send(KeepAliveRequest::Renew(fence), now, random)]
            }
        }
    }

    fn send_if_due(&mut self, now: u64, random: u64) -> Vec<Effect> {
        if self.next_send.is_none_or(|at| now < at) {
            return Vec::new();
        }
        match self.phase {
            Phase::Acquiring => vec![self.send(KeepAliveRequest::Acquire, now, random)],
            Phase::Stale { fence } | Phase::Held { fence, .. } => {
                vec![self.send(KeepAliveRequest::Renew(fence), now, random)]
            }
            Phase::Ended => Vec::new(),
        }
    }

    fn stop(&mut self, now: u64) -> Vec<Effect> {
        let phase = self.phase;
        self.next_send = None;
        self.phase = Phase::Ended;
        match phase {
            Phase::Stale { fence } | Phase::Held { fence, .. } => self.release(fence, now),
            // A grant may be on its way; the reply finds the keeper over, and gives it back.
            Phase::Acquiring if self.last_request_id > AttemptId(0) => {
                vec![self.send_once(KeepAliveRequest::Withdraw, now)]
            }
            Phase::Acquiring | Phase::Ended => Vec::new(),
        }
    }

    fn release(&mut self, fence: Fence, now: u64) -> Vec<Effect> {
        if self.released.replace(fence) == Some(fence) {
            return Vec::new();
        }
        vec![self.send_once(KeepAliveRequest::Release(fence), now)]
    }

    /// Sends, and sends again if no answer comes.
    fn send(&mut self, call: KeepAliveRequest, now: u64, random: u64) -> Effect {
        let timeout = self.backoff() + random % (self.backoff() / 8 + 1);
        self.next_send = Some(now.saturating_add(timeout));
        self.failures = self.failures.saturating_add(1);
        self.send_once(call, now)
    }

    fn send_once(&mut self, call: KeepAliveRequest, now: u64) -> Effect {
        let attempt = self.last_request_id.advance();
        match call {
            KeepAliveRequest::Acquire | KeepAliveRequest::Renew(_) => self.sent.push((attempt, now)),
            KeepAliveRequest::Release(_) | KeepAliveRequest::Withdraw => {
                self.final_requests.add(call, attempt, now, self.max_backoff());
            }
        }
        if self.sent.len() > MAX_PENDING_REQUESTS {
            self.sent.remove(0);
        }
        Effect::Send { request_id: attempt, request: call }
    }

    /// A third of what the lease has, after the last message that was answered, spread by a tenth of that.
    fn schedule_renewal(&mut self, sent: u64, valid_for: TickDuration, random: u64) {
        let third = self.ttl.min(valid_for).0 / 3;
        let early = random % (third / 10 + 1);
        self.next_send = Some(sent.saturating_add(third - early));
    }

    /// How long to wait for an answer, or after a failure: longer each time, but never so long that the
    /// lease would be lost for want of a try.
    fn backoff(&self) -> u64 {
        MIN_BACKOFF.0.saturating_mul(1 << self.failures.min(16)).min(self.max_backoff().0)
    }

    fn max_backoff(&self) -> TickDuration {
        TickDuration((self.ttl.0 / 6).clamp(MIN_BACKOFF.0, MAX_BACKOFF.0))
    }

    fn end(&mut self) {
        // What is still under way may yet be answered with a grant, which is then given back.
        self.phase = Phase::Ended;
        self.next_send = None;
    }
}
