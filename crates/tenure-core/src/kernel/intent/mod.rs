//! Intents: accepted requests, and the sessions that carry them out.
//!
//! The API accepts an intent and returns its session. The one worker that holds the leader lock takes sessions, holds their
//! leases, and carries them out. Both use the same kernel, so that a session and its leases never disagree: a session that
//! loses a lease ends in the decision that ends the lease, and a session that ends releases its leases.

mod codec;
mod decide;
mod session;
mod state;
mod target;

use std::sync::Arc;

pub(super) use decide::decide;
pub(super) use session::{IntentDecision, end_orphaned_sessions, record_lost_lease, sweep_sessions};
pub use session::{IntentKey, IntentSession, IntentSessionEnd, IntentSessionState};
pub(super) use state::IntentSessionStore;
pub(crate) use target::IntentTargetKind;
pub use target::{
    Intent, IntentTarget, LEADER_LOCK, ORCHESTRATOR_PRINCIPAL, leader_lock_resource, orchestrator_principal,
    tuner_resource, tuner_slot,
};

use crate::value::{Fence, Holder, Nonce, Principal, Tick, TickDuration};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntentCommand {
    /// Accept an intent, or find the session that it already became.
    Accept(AcceptIntent),
    /// End a session, whoever wanted it.
    Stop { session: Holder, by: Principal },
    /// The worker takes a session: its leases, or its end if they cannot be had.
    Take(TakeIntentSession),
    /// The worker has started the session's pipeline.
    Run {
        session: Holder,
        /// Why the worker may.
        leader: Fence,
        /// The processes, as the worker names them.
        process: Arc<str>,
    },
    /// The worker renews its guard, and the leases of these sessions.
    KeepAlive {
        /// Why the worker may.
        guard: Fence,
        ttl: TickDuration,
        sessions: Vec<Holder>,
    },
    /// The worker has ended the session's pipeline, or seen it end.
    Finish {
        session: Holder,
        /// Why the worker may.
        guard: Fence,
        end: IntentSessionEnd,
        /// For people.
        detail: Arc<str>,
    },
    /// The worker has seen the processes of these sessions gone, whose worker was gone: they are over, and what they
    /// hold is free.
    Wipe {
        /// Why the worker may.
        guard: Fence,
        sessions: Vec<Holder>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptIntent {
    /// The session's name, if it becomes a new one. Nobody used it before.
    pub session: Holder,
    pub intent: Intent,
    pub key: IntentKey,
    /// Under which it may be known from before, when the secret was another one.
    pub previous_key: Option<IntentKey>,
    pub principal: Principal,
    /// How long it may wait for a worker.
    pub wait_timeout: TickDuration,
    /// Take the lease of its target first, and refuse if that is held.
    pub lease: Option<(TickDuration, Nonce)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeIntentSession {
    pub session: Holder,
    /// Why the worker may.
    pub leader: Fence,
    /// How many tuners there are, numbered from 0.
    pub slots: u32,
    pub ttl: TickDuration,
    /// For their tokens: of the target, and of the tuner.
    pub nonces: [Nonce; 2],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntentOutcome {
    Accepted {
        session: Holder,
        /// Whether it is new; else it was there before, and nothing happened.
        is_new: bool,
    },
    /// The session is the worker's, and these leases are the session's: of the target, and of the tuner.
    Taken {
        leases: Vec<Fence>,
        slot: Option<u32>,
        /// When the first of them is over.
        until: Tick,
    },
    /// That is where the session is now, by this request or before it.
    Current {
        state: IntentSessionState,
        end: Option<IntentSessionEnd>,
    },
    KeptAlive {
        until: Tick,
        /// What became of each session, in the order asked for.
        sessions: Vec<KeepAliveOutcome>,
    },
    Wiped {
        sessions: usize,
    },
}

/// What became of one session's leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepAliveOutcome {
    /// They live, and this is where the session is.
    Active {
        /// When the first of them is over.
        until: Tick,
        state: IntentSessionState,
    },
    /// They are lost, and nothing gives them back.
    Lost,
}

/// One step of a session. Each leads to the state that it is named after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntentEvent {
    /// An intent was accepted. Whoever carries out intents hears of it by this.
    Accepted(IntentAcceptance),
    /// A worker took it; its leases were issued or renewed right before.
    Starting {
        session: Holder,
        at: Tick,
        worker: Holder,
        leader: Fence,
        slot: Option<u32>,
    },
    Running {
        session: Holder,
        at: Tick,
        /// The processes, as the worker names them.
        process: Arc<str>,
    },
    Stopping {
        session: Holder,
        at: Tick,
        by: Principal,
    },
    /// It is over; what it holds is given back right after.
    Ended {
        session: Holder,
        at: Tick,
        end: IntentSessionEnd,
        /// For people.
        detail: Arc<str>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentAcceptance {
    pub session: Holder,
    pub intent: Intent,
    /// Under which a repetition finds it.
    pub key: IntentKey,
    pub principal: Principal,
    pub at: Tick,
    /// Until when a worker has to take it.
    pub start_by: Tick,
}

crate::kernel::event::type_names! {
    IntentEvent {
        Accepted = "intent.accepted",
        Starting = "intent.starting",
        Running = "intent.running",
        Stopping = "intent.stopping",
        Ended = "intent.ended",
    }
}

impl IntentEvent {
    pub const fn next_state(&self) -> IntentSessionState {
        match self {
            IntentEvent::Accepted(_) => IntentSessionState::New,
            IntentEvent::Starting { .. } => IntentSessionState::Starting,
            IntentEvent::Running { .. } => IntentSessionState::Running,
            IntentEvent::Stopping { .. } => IntentSessionState::Stopping,
            IntentEvent::Ended { .. } => IntentSessionState::Ended,
        }
    }

    pub fn session(&self) -> &Holder {
        match self {
            IntentEvent::Accepted(accepted) => &accepted.session,
            IntentEvent::Starting { session, .. }
            | IntentEvent::Running { session, .. }
            | IntentEvent::Stopping { session, .. }
            | IntentEvent::Ended { session, .. } => session,
        }
    }

    pub fn occurred_at(&self) -> Tick {
        match self {
            IntentEvent::Accepted(accepted) => accepted.at,
            IntentEvent::Starting { at, .. }
            | IntentEvent::Running { at, .. }
            | IntentEvent::Stopping { at, .. }
            | IntentEvent::Ended { at, .. } => *at,
        }
    }

    /// About how many bytes callers made it long by.
    pub fn byte_size(&self) -> usize {
        match self {
            IntentEvent::Accepted(accepted) => 64 + accepted.intent.byte_size(),
            IntentEvent::Running { process, .. } => process.len(),
            IntentEvent::Ended { detail, .. } => detail.len(),
            IntentEvent::Starting { worker, .. } => worker.as_str().len(),
            IntentEvent::Stopping { by, .. } => by.as_str().len(),
        }
    }
}
