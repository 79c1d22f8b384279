//! What may be asked about sessions: by whoever wants something, and by the worker.

use std::sync::Arc;

use super::session::{IntentKey, SessionEnd, SessionState};
use super::target::Intent;
use crate::kernel::name::{Holder, Principal};
use crate::kernel::value::{Fence, Nonce, Span, Tick};

/// One request, in the imperative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntentCommand {
    /// Accept an intent, or find the session that it already became.
    Accept(Accept),
    /// End a session, whoever wanted it.
    Stop {
        /// Which.
        session: Holder,
        /// Who asks.
        by: Principal,
    },
    /// The worker takes a session: its leases, or its end if they cannot be had.
    Take(Take),
    /// The worker has started the session's pipeline.
    Run {
        /// Which session.
        session: Holder,
        /// Why the worker may.
        guard: Fence,
        /// The processes, as the worker names them.
        process: Arc<str>,
    },
    /// The worker renews its guard, and the leases of these sessions.
    Keep {
        /// Why the worker may.
        guard: Fence,
        /// For how long from now.
        ttl: Span,
        /// Which sessions.
        sessions: Vec<Holder>,
    },
    /// The worker has ended the session's pipeline, or seen it end.
    Finish {
        /// Which session.
        session: Holder,
        /// Why the worker may.
        guard: Fence,
        /// Why it is over.
        end: SessionEnd,
        /// For people.
        detail: Arc<str>,
    },
    /// The worker has seen the processes of these sessions gone, whose worker was gone: they are over, and what they
    /// hold is free.
    Wipe {
        /// Why the worker may.
        guard: Fence,
        /// Which sessions.
        sessions: Vec<Holder>,
    },
}

/// An intent to be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accept {
    /// The session's name, if it becomes a new one. Nobody used it before.
    pub session: Holder,
    /// What is wanted.
    pub intent: Intent,
    /// Under which it is known.
    pub key: IntentKey,
    /// Under which it may be known from before, when the secret was another one.
    pub previous_key: Option<IntentKey>,
    /// Who wants it.
    pub principal: Principal,
    /// How long it may wait for a worker.
    pub patience: Span,
    /// Take the lease of its target first, and refuse if that is held.
    pub lease: Option<(Span, Nonce)>,
}

/// A session to be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Take {
    /// Which.
    pub session: Holder,
    /// Why the worker may.
    pub guard: Fence,
    /// How many tuners there are, numbered from 0.
    pub slots: u32,
    /// How long its leases last.
    pub ttl: Span,
    /// For their tokens: of the target, and of the tuner.
    pub nonces: [Nonce; 2],
}

/// What to tell who asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntentAnswer {
    /// This is the session.
    Accepted {
        /// Its name.
        session: Holder,
        /// Whether it is new; else it was there before, and nothing happened.
        is_new: bool,
    },
    /// The session is the worker's, and these leases are the session's: of the target, and of the tuner.
    Taken {
        /// Their numbers.
        leases: Vec<Fence>,
        /// Which tuner.
        slot: Option<u32>,
        /// When the first of them is over.
        until: Tick,
    },
    /// That is where the session is now, by this request or before it.
    Now {
        /// Its state.
        state: SessionState,
        /// Why, if it is over.
        end: Option<SessionEnd>,
    },
    /// The guard lives until then.
    Kept {
        /// The end of the guard.
        until: Tick,
        /// What became of each session, in the order asked for.
        sessions: Vec<Kept>,
    },
    /// So many sessions were over by it.
    Wiped {
        /// How many.
        sessions: usize,
    },
}

/// What became of one session's leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// They live, and this is where the session is.
    Until {
        /// When the first of them is over.
        until: Tick,
        /// Where the session is.
        state: SessionState,
    },
    /// They are lost, and nothing gives them back.
    Lost,
}
