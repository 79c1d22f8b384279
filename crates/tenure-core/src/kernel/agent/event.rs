//! What happened to an agent, in the past tense.

use std::sync::Arc;

use super::phase::Phase;
use super::rank::Rank;
use crate::kernel::event::WaitEnd;
use crate::kernel::name::{Holder, Principal};
use crate::kernel::value::{Tick, Ticket};
use crate::kernel::want::Want;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEvent {
    /// An attempt began: from now on this is the agent's age.
    Began {
        /// Its age.
        rank: Rank,
        /// To whom it belongs.
        principal: Principal,
        /// In which session.
        session: Arc<str>,
        /// When.
        at: Tick,
    },
    /// It waits.
    Waits(Pending),
    /// It waits no longer, and got nothing.
    Left {
        /// Which wait.
        ticket: Ticket,
        /// When.
        at: Tick,
        /// Why.
        end: WaitEnd,
    },
    /// It died, and may come back.
    Died {
        /// Who.
        agent: Holder,
        /// When.
        at: Tick,
        /// When it may come back.
        retry_at: Tick,
    },
    /// It said what it is doing.
    Reported {
        /// Who.
        agent: Holder,
        /// To whom it belongs.
        principal: Principal,
        /// In which session.
        session: Arc<str>,
        /// When.
        at: Tick,
        /// What it is doing.
        phase: Phase,
    },
}

/// A wait as it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// Its number.
    pub ticket: Ticket,
    /// Who waits, and how old it is.
    pub rank: Rank,
    /// For what.
    pub wants: Vec<Want>,
    /// Since when.
    pub at: Tick,
    /// No grant at or after this tick.
    pub until: Tick,
}

impl AgentEvent {
    /// The type of every event of an agent.
    pub const TYPE_NAMES: [&str; 5] =
        ["agent.began", "agent.waits", "agent.left", "agent.died", "agent.reported"];

    /// Its type, as records and those who listen know it.
    pub const fn type_name(&self) -> &'static str {
        let index = match self {
            AgentEvent::Began { .. } => 0,
            AgentEvent::Waits(_) => 1,
            AgentEvent::Left { .. } => 2,
            AgentEvent::Died { .. } => 3,
            AgentEvent::Reported { .. } => 4,
        };
        Self::TYPE_NAMES[index]
    }

    /// When it happened.
    pub fn at(&self) -> Tick {
        match self {
            AgentEvent::Waits(pending) => pending.at,
            AgentEvent::Began { at, .. }
            | AgentEvent::Left { at, .. }
            | AgentEvent::Died { at, .. }
            | AgentEvent::Reported { at, .. } => *at,
        }
    }
}
