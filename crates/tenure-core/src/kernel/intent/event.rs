//! What happened to a session, in the past tense.

use std::sync::Arc;

use super::session::{IntentKey, IntentSessionEnd, IntentSessionState};
use super::target::Intent;
use crate::kernel::name::{Holder, Principal};
use crate::kernel::newtypes::{Fence, Tick};

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
