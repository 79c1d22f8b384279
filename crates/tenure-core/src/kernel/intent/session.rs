//! A session: what became of an intent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::target::Intent;
use crate::kernel::event::Event;
use crate::kernel::intent::{IntentEvent, IntentOutcome, ORCHESTRATOR_PRINCIPAL};
use crate::kernel::lease::decision_builder::DecisionBuilder;
use crate::kernel::state::LeaseEntry;
use crate::lease::ReleaseReason;
use crate::rules::is_expired;
use crate::value::{Fence, Holder, Principal, Tick};

/// Under which one request and its repetitions are known: HMAC-SHA256 of what is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntentKey(pub [u8; 32]);

crate::text_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum IntentSessionState: parse {
        /// Accepted. No worker has taken it.
        New = "NEW",
        /// Its leases are held, its pipeline is about to start.
        Starting = "STARTING",
        Running = "RUNNING",
        Stopping = "STOPPING",
        Ended = "ENDED",
    }
}

impl IntentSessionState {
    /// Which states may follow. The one table of them.
    pub const fn successors(self) -> &'static [IntentSessionState] {
        match self {
            Self::New => &[Self::Starting, Self::Ended],
            Self::Starting => &[Self::Running, Self::Stopping, Self::Ended],
            Self::Running => &[Self::Stopping, Self::Ended],
            Self::Stopping => &[Self::Ended],
            Self::Ended => &[],
        }
    }

    /// Whether a worker has it, with its leases.
    pub const fn is_taken(self) -> bool {
        matches!(self, Self::Starting | Self::Running | Self::Stopping)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntentSessionEnd {
    /// Another session shows the same.
    Busy,
    NoTuner,
    NoWorker,
    Stopped,
    /// Its pipeline ended by itself, and says that all went well.
    Completed,
    /// Its pipeline did not start, or ended with an error.
    Failed,
    LeaseLost,
    /// Its worker was gone, and the next one cleaned up.
    WorkerRestarted,
    WorkerStopped,
}

impl IntentSessionEnd {
    pub const ALL: [IntentSessionEnd; 9] = [
        Self::Busy,
        Self::NoTuner,
        Self::NoWorker,
        Self::Stopped,
        Self::Completed,
        Self::Failed,
        Self::LeaseLost,
        Self::WorkerRestarted,
        Self::WorkerStopped,
    ];

    /// The reason, as it is written for people and programs.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Busy | Self::NoTuner => "R_LEASE_BUSY",
            Self::NoWorker => "R_NO_WORKER",
            Self::Stopped => "R_STOPPED",
            Self::Completed => "R_PIPELINE_EXITED",
            Self::Failed => "R_PIPELINE_FAILED",
            Self::LeaseLost => "R_LEASE_EXPIRED",
            Self::WorkerRestarted => "R_WORKER_RESTARTED",
            Self::WorkerStopped => "R_WORKER_STOPPED",
        }
    }

    /// How it went, as it is written for people and programs.
    pub const fn outcome(self) -> &'static str {
        match self {
            Self::Busy => "REJECTED_BUSY",
            Self::NoTuner => "REJECTED_NO_TUNER",
            Self::NoWorker => "REJECTED_NO_WORKER",
            Self::Stopped | Self::WorkerStopped => "STOPPED",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::LeaseLost | Self::WorkerRestarted => "LOST",
        }
    }
}

/// What became of an intent, so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentSession {
    /// Its name, and the holder of its leases.
    pub id: Holder,
    pub intent: Intent,
    /// Under which a repetition finds it, until it is over.
    pub key: IntentKey,
    pub principal: Principal,
    pub state: IntentSessionState,
    /// Grows with every change of any session: whoever has seen this one has seen all below.
    pub revision: u64,
    pub accepted_at: Tick,
    /// Until when a worker has to take it.
    pub start_by: Tick,
    /// When it came to where it is.
    pub changed_at: Tick,
    /// Who took it, and under which guard.
    pub worker: Option<(Holder, Fence)>,
    /// Which tuner it has or had.
    pub slot: Option<u32>,
    /// The processes that carry it out, as its worker names them; may be empty.
    pub process: Arc<str>,
    pub end: Option<IntentSessionEnd>,
    /// For people; may be empty.
    pub detail: Arc<str>,
}

impl IntentSession {
    /// About how many bytes the smallest one takes.
    const MIN_BYTES: usize = 256;

    /// About how many bytes one takes that begins like this.
    pub(crate) fn byte_size_of(id: &Holder, intent: &Intent, principal: &Principal) -> usize {
        Self::MIN_BYTES + id.as_str().len() + intent.byte_size() + principal.as_str().len()
    }

    /// How many leases it has while a worker has it.
    pub(crate) fn required_lease_count(&self) -> usize {
        1 + usize::from(self.slot.is_some())
    }

    /// About how many bytes it takes.
    pub(crate) fn byte_size(&self) -> usize {
        let worker = self.worker.as_ref().map_or(0, |(worker, _)| worker.as_str().len());
        let texts = self.process.len() + self.detail.len();
        Self::byte_size_of(&self.id, &self.intent, &self.principal) + worker + texts
    }
}

/// What people read of a session that nobody took.
const NO_WORKER_DETAIL: &str = "no worker took it in time";
/// What people read of a session that lost a lease.
const LEASE_LOST_DETAIL: &str = "a lease of it was lost";

/// What intents add to a decision: the sessions that end in it.
#[derive(Default)]
pub(crate) struct IntentDecision {
    /// Sessions that end in this decision, and how.
    ended: BTreeMap<Holder, IntentSessionEnd>,
    /// Holders that lost a lease and may be sessions, ordered by name because slots must not show in the ledger.
    orphaned: BTreeSet<Holder>,
}

pub(super) fn end_session(
    decision: &mut DecisionBuilder<'_>,
    session: &IntentSession,
    end: IntentSessionEnd,
    detail: &str,
) -> IntentOutcome {
    push_session_end(decision, session, end, detail);
    let reason = match end {
        IntentSessionEnd::Completed => ReleaseReason::Completed,
        IntentSessionEnd::Stopped | IntentSessionEnd::WorkerStopped => ReleaseReason::Voluntary,
        _ => ReleaseReason::Aborted,
    };
    for lease in decision.active_leases_of(&session.id) {
        decision.release(lease, reason);
    }
    IntentOutcome::Current { state: IntentSessionState::Ended, end: Some(end) }
}

/// Says that a session is over. What it holds has to be ended by who says so.
pub(super) fn push_session_end(
    decision: &mut DecisionBuilder<'_>,
    session: &IntentSession,
    end: IntentSessionEnd,
    detail: &str,
) {
    decision.apis.intents.ended.insert(session.id.clone(), end);
    decision.push(Event::Intent(Box::new(IntentEvent::Ended {
        session: session.id.clone(),
        at: decision.now,
        end,
        detail: detail.into(),
    })));
    // What it has lost without anybody saying so would else stay with one that is over.
    decision.expire_leases_of(&session.id);
}

/// Where a session is, if it is over. One that is over without anybody having said so ends here: no worker took it in
/// time, or it has lost a lease.
pub(super) fn ended_outcome(
    decision: &mut DecisionBuilder<'_>,
    session: &IntentSession,
) -> Option<IntentOutcome> {
    let before = session.end.or_else(|| decision.apis.intents.ended.get(&session.id).copied());
    if let Some(end) = before {
        return Some(IntentOutcome::Current { state: IntentSessionState::Ended, end: Some(end) });
    }
    if session.state == IntentSessionState::New {
        let too_late = is_expired(decision.now.0, session.start_by.0);
        return too_late
            .then(|| end_session(decision, session, IntentSessionEnd::NoWorker, NO_WORKER_DETAIL));
    }
    let is_whole = decision.active_leases_of(&session.id).len() == session.required_lease_count();
    (!is_whole).then(|| end_session(decision, session, IntentSessionEnd::LeaseLost, LEASE_LOST_DETAIL))
}

/// How many sessions go on, and about how large they are, without those that end in this decision.
pub(super) fn active_count_and_size(decision: &DecisionBuilder<'_>) -> (usize, usize) {
    let (live, bytes) = decision.state.active_intent_session_count_and_size();
    let ended = decision.apis.intents.ended.keys().filter_map(|id| decision.state.intent_session(id));
    (live - decision.apis.intents.ended.len(), bytes - ended.map(IntentSession::byte_size).sum::<usize>())
}

/// A session that is taken ends with the first lease that it loses.
pub(crate) fn end_orphaned_sessions(decision: &mut DecisionBuilder<'_>) {
    while let Some(holder) = decision.apis.intents.orphaned.pop_first() {
        let state = decision.state;
        if let Some(session) = state.intent_session(&holder)
            && session.state.is_taken()
        {
            ended_outcome(decision, session);
        }
    }
}

/// Notes whose lease ended, where that may be a session's.
pub(crate) fn record_lost_lease(decision: &mut DecisionBuilder<'_>, lease: &LeaseEntry) {
    if decision.state.has_intent_sessions()
        && decision.state.principal_of(lease.holder).1.as_str() == ORCHESTRATOR_PRINCIPAL
    {
        decision.apis.intents.orphaned.insert(decision.state.holder_name(lease.holder).clone());
    }
}

/// Ends at most `max` sessions that have waited too long for a worker. Says whether there are more.
pub(crate) fn sweep_sessions(decision: &mut DecisionBuilder<'_>, max: usize) -> bool {
    let mut overdue = decision.state.overdue_intent_sessions(decision.now);
    for session in overdue.by_ref().take(max) {
        ended_outcome(decision, session);
    }
    overdue.next().is_some()
}
