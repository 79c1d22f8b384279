//! Entries of the ledger that were not acknowledged: a request without a response must explain each.

use std::collections::HashSet;

use super::response_checks::MatchedEntries;
use super::timeline::{LeaseEnd, LeaseTimeline, LedgerInstant, Timeline};
use crate::history::History;
use crate::law::{Law, Violation};
use crate::operation::{Action, Operation, OperationResponse};

/// Finds, for each entry that no answer accounts for, a request without an answer; each request explains one.
pub(super) fn check(
    history: &History,
    timeline: &Timeline<'_>,
    claims: &MatchedEntries,
    violations: &mut Vec<Violation>,
) {
    let open: Vec<(usize, &Operation)> = history
        .operations
        .iter()
        .enumerate()
        .filter(|(_, operation)| can_have_taken_effect(operation))
        .collect();
    // One that hands a lease on explains an end and a beginning.
    let mut spent: HashSet<(usize, &str)> = HashSet::new();
    for (fence, life) in &timeline.leases {
        let mut require = |moment: LedgerInstant, what: &'static str, asks: &dyn Fn(&Operation) -> bool| {
            if claims.entries.contains(&moment.seq) {
                return;
            }
            let in_time = |operation: &Operation| {
                !timeline.has_times
                    || (operation.invoked..=operation.latest_effect_time()).contains(&moment.at)
            };
            let found = open.iter().find(|(index, operation)| {
                !spent.contains(&(*index, what)) && in_time(operation) && asks(operation)
            });
            match found {
                Some((index, operation)) => {
                    // A batch is one request for several leases.
                    if operation.resources().len() == 1 {
                        spent.insert((*index, what));
                    }
                }
                None => {
                    let violation =
                        Violation::new(Law::NoUnrequestedEvents, format!("nobody asked for {what} {fence}"));
                    let story =
                        life.entries.iter().fold(violation, |violation, entry| violation.with_line(entry));
                    violations.push(story);
                }
            }
        };
        let explained_by = |operation: &Operation| begins(operation, life);
        require(life.started(), "the beginning of", &explained_by);
        for (moment, _) in &life.terms[1..] {
            require(
                *moment,
                "the renewal of",
                &|operation: &Operation| matches!(&operation.action, Action::Renew { fence: own, .. } if own == fence),
            );
        }
        // What could not be delivered is taken back, whenever that is noticed.
        let is_taken_back = open.iter().any(|(_, operation)| begins(operation, life));
        if let Some((moment, end @ (LeaseEnd::Released | LeaseEnd::Revoked))) = life.end
            && !(is_taken_back && end == LeaseEnd::Revoked)
        {
            require(moment, "the end of", &|operation: &Operation| ends(operation, *fence, end));
        }
    }
}

/// Whether nobody knows what became of it. A waiter that was told that its time is over may have been let in too late.
fn can_have_taken_effect(operation: &Operation) -> bool {
    let has_waited = matches!(&operation.action, Action::Acquire { wait_ms, .. } if *wait_ms > 0);
    match &operation.answer {
        None => true,
        Some(OperationResponse::Held { .. }) => has_waited,
        // The new lease is claimed by the answer; the end of the old one goes with it.
        Some(OperationResponse::Granted { .. }) => {
            matches!(operation.action, Action::Transfer { .. } | Action::Change { .. })
        }
        _ => false,
    }
}

fn begins(operation: &Operation, life: &LeaseTimeline<'_>) -> bool {
    match &operation.action {
        Action::Acquire { wants, holder, .. } => {
            let matches = |request: &crate::operation::LeaseRequest| {
                request.resource == life.resource && request.mode == life.mode
            };
            holder == life.holder && wants.iter().any(matches) && life.continues.is_none()
        }
        Action::Transfer { fence, to: holder, mode, .. } | Action::Change { fence, holder, mode, .. } => {
            operation.answer.is_none()
                && life.continues == Some(*fence)
                && holder == life.holder
                && *mode == life.mode
        }
        _ => false,
    }
}

fn ends(operation: &Operation, fence: u64, end: LeaseEnd) -> bool {
    match &operation.action {
        Action::Release { fence: own, .. } => *own == fence && end == LeaseEnd::Released,
        Action::Revoke { fence: own, .. }
        | Action::Transfer { fence: own, .. }
        | Action::Change { fence: own, .. } => *own == fence && end == LeaseEnd::Revoked,
        _ => false,
    }
}
