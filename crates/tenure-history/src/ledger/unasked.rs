//! What stands in the ledger and was not acknowledged: somebody must have asked for it, and have heard nothing.

use std::collections::HashSet;

use super::answers::Claims;
use super::lives::{End, Lease, Lives, Moment};
use crate::history::History;
use crate::law::{Law, Violation};
use crate::operation::{Action, Answer, Operation};

/// Finds, for each entry that no answer accounts for, a request without an answer; each request explains one.
pub(super) fn check(history: &History, lives: &Lives<'_>, claims: &Claims, violations: &mut Vec<Violation>) {
    let open: Vec<(usize, &Operation)> =
        history.operations.iter().enumerate().filter(|(_, operation)| may_have_happened(operation)).collect();
    // One that hands a lease on explains an end and a beginning.
    let mut spent: HashSet<(usize, &str)> = HashSet::new();
    for (fence, life) in &lives.leases {
        let mut need = |moment: Moment, what: &'static str, asks: &dyn Fn(&Operation) -> bool| {
            if claims.entries.contains(&moment.seq) {
                return;
            }
            let in_time = |operation: &Operation| {
                !lives.has_times || (operation.invoked..=operation.latest()).contains(&moment.at)
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
                        Violation::new(Law::NothingUnasked, format!("nobody asked for {what} {fence}"));
                    let story = life.entries.iter().fold(violation, |violation, entry| violation.and(entry));
                    violations.push(story);
                }
            }
        };
        let explained_by = |operation: &Operation| begins(operation, life);
        need(life.began(), "the beginning of", &explained_by);
        for (moment, _) in &life.terms[1..] {
            need(
                *moment,
                "the renewal of",
                &|operation: &Operation| matches!(&operation.action, Action::Renew { fence: own, .. } if own == fence),
            );
        }
        // What could not be delivered is taken back, whenever that is noticed.
        let is_taken_back = open.iter().any(|(_, operation)| begins(operation, life));
        if let Some((moment, end @ (End::Released | End::Revoked))) = life.end
            && !(is_taken_back && end == End::Revoked)
        {
            need(moment, "the end of", &|operation: &Operation| ends(operation, *fence, end));
        }
    }
}

/// Whether nobody knows what became of it. A waiter that was told that its time is over may have been let in too late.
fn may_have_happened(operation: &Operation) -> bool {
    let has_waited = matches!(&operation.action, Action::Acquire { wait_ms, .. } if *wait_ms > 0);
    match &operation.answer {
        None => true,
        Some(Answer::Held { .. }) => has_waited,
        // The new lease is claimed by the answer; the end of the old one goes with it.
        Some(Answer::Granted { .. }) => {
            matches!(operation.action, Action::Transfer { .. } | Action::Change { .. })
        }
        _ => false,
    }
}

fn begins(operation: &Operation, life: &Lease<'_>) -> bool {
    match &operation.action {
        Action::Acquire { wants, holder, .. } => {
            let wanted =
                |want: &crate::operation::Want| want.resource == life.resource && want.mode == life.mode;
            holder == life.holder && wants.iter().any(wanted) && life.continues.is_none()
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

fn ends(operation: &Operation, fence: u64, end: End) -> bool {
    match &operation.action {
        Action::Release { fence: own, .. } => *own == fence && end == End::Released,
        Action::Revoke { fence: own, .. }
        | Action::Transfer { fence: own, .. }
        | Action::Change { fence: own, .. } => *own == fence && end == End::Revoked,
        _ => false,
    }
}
