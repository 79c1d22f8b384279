//! How sessions end within a decision: with what they hold, and because of what they lost.

use std::collections::{BTreeMap, BTreeSet};

use crate::kernel::decision_builder::DecisionBuilder;
use crate::kernel::event::Event;
use crate::kernel::intent::{
    IntentEvent, IntentOutcome, IntentSession, IntentSessionEnd, IntentSessionState, ORCHESTRATOR_PRINCIPAL,
};
use crate::kernel::name::Holder;
use crate::kernel::state::LeaseEntry;
use crate::lease::ReleaseReason;
use crate::rules::time::is_expired;

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
