//! Fences are numbers of the whole ledger: they are compared across resources, which the search does not do.

use std::collections::HashMap;

use crate::history::History;
use crate::law::{Law, Violation};
use crate::operation::{Operation, RequestIdentity};

/// No fence was granted to two requests, and whoever asked after another was answered has a larger one.
pub fn check(history: &History) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut first: HashMap<u64, &Operation> = HashMap::new();
    let mut grants: Vec<(&Operation, u64)> = Vec::new();
    let mut operations: Vec<&Operation> = history.operations.iter().collect();
    operations.sort_by_key(|operation| operation.invoked);
    for operation in operations {
        for grant in operation.grants() {
            let Some(before) = first.insert(grant.fence, operation) else {
                grants.push((operation, grant.fence));
                continue;
            };
            if operation.request_identity().is_none()
                || operation.request_identity() != before.request_identity()
            {
                let reason = format!("fence {} was granted to two requests", grant.fence);
                violations.push(
                    Violation::new(Law::UniqueFences, reason)
                        .with_operation(before)
                        .with_operation(operation),
                );
            }
        }
    }
    violations.extend(decreasing_fences(history, &grants));
    violations
}

/// Grants that were asked for after one with a larger fence was answered.
fn decreasing_fences(history: &History, grants: &[(&Operation, u64)]) -> Vec<Violation> {
    // What is sent again was asked for when it was sent first.
    let mut first_sent: HashMap<RequestIdentity<'_>, u64> = HashMap::new();
    for operation in &history.operations {
        if let Some(request) = operation.request_identity() {
            let first = first_sent.entry(request).or_insert(operation.invoked);
            *first = operation.invoked.min(*first);
        }
    }
    let first_sent_at = |operation: &Operation| {
        operation
            .request_identity()
            .and_then(|request| first_sent.get(&request).copied())
            .unwrap_or(operation.invoked)
    };
    let mut grants = grants.to_vec();
    grants.sort_by_key(|(operation, _)| first_sent_at(operation));
    let mut by_answer_time = grants.clone();
    by_answer_time.sort_by_key(|(operation, _)| operation.latest_effect_time());
    let mut answered = by_answer_time.into_iter().peekable();
    let mut highest: Option<(&Operation, u64)> = None;
    let mut violations = Vec::new();
    for (operation, fence) in grants {
        while let Some(before) =
            answered.next_if(|(other, _)| other.latest_effect_time() < first_sent_at(operation))
        {
            if highest.is_none_or(|(_, other)| other < before.1) {
                highest = Some(before);
            }
        }
        if let Some((before, other)) = highest.filter(|(_, other)| *other > fence) {
            let reason = format!("{fence} was granted after {other}");
            violations.push(
                Violation::new(Law::MonotonicFences, reason).with_operation(before).with_operation(operation),
            );
        }
    }
    violations
}
