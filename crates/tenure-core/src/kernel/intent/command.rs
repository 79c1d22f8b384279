//! What may be asked about sessions: by whoever wants something, and by the worker.

use std::sync::Arc;

use super::session::{IntentKey, IntentSessionEnd, IntentSessionState};
use super::target::Intent;
use crate::kernel::name::{Holder, Principal};
use crate::kernel::newtypes::{Fence, Nonce, Tick, TickDuration};

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
