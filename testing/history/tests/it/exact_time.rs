//! The search against exact time: whatever one clock explains exactly, the search must accept.

use proptest::prelude::*;
use tenure_history::linearizability::{self, DEFAULT_MAX_STEPS, SearchVerdict};
use tenure_history::{Action, History, LeaseMode, Operation, OperationResponse};

use crate::random_histories::{TestRng, proptest_config, run_simple_server};

/// A lease with its exact end, in milliseconds.
#[derive(Clone)]
struct ExactLease {
    fence: u64,
    mode: LeaseMode,
    end: u64,
    ttl: u64,
}

/// Whether these operations can have happened one after the other, each at a whole millisecond of its own time.
fn is_explained(rest: &[&Operation], leases: &[ExactLease], now: u64) -> bool {
    let Some(deadline) = rest.iter().map(|one| one.latest_effect_time()).min() else { return true };
    (0..rest.len()).filter(|index| rest[*index].invoked <= deadline).any(|index| {
        let operation = rest[index];
        let remaining: Vec<_> =
            rest.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, one)| *one).collect();
        let (from, to) = (operation.invoked.div_ceil(1_000).max(now), operation.latest_effect_time() / 1_000);
        // A few of the moments in its time: the first, the last, one between, and each at which a lease ends.
        let ends = leases.iter().map(|lease| lease.end);
        let mut moments =
            [from, to, from.midpoint(to)].into_iter().chain(ends).filter(|at| (from..=to).contains(at));
        moments.any(|at| {
            apply(operation, leases, at).is_some_and(|leases| is_explained(&remaining, &leases, at))
        })
    })
}

fn apply(operation: &Operation, before: &[ExactLease], at: u64) -> Option<Vec<ExactLease>> {
    let mut leases: Vec<ExactLease> = before.iter().filter(|lease| lease.end > at).cloned().collect();
    let find = |leases: &[ExactLease], fence: u64| leases.iter().position(|lease| lease.fence == fence);
    match (&operation.action, operation.answer.as_ref()?) {
        (Action::Acquire { wants: requests, .. }, OperationResponse::Granted { leases: granted }) => {
            let (mode, ttl) = (requests[0].mode, requests[0].ttl_ms);
            let is_free = leases.iter().all(|lease| lease.mode.is_compatible(mode));
            leases.push(ExactLease { fence: granted[0].fence, mode, end: at + ttl, ttl });
            is_free.then_some(leases)
        }
        (Action::Acquire { wants, .. }, OperationResponse::Held { .. }) => {
            leases.iter().any(|lease| !lease.mode.is_compatible(wants[0].mode)).then_some(leases)
        }
        (Action::Renew { fence, .. }, OperationResponse::Renewed { .. }) => {
            let place = find(&leases, *fence)?;
            leases[place].end = leases[place].end.max(at + leases[place].ttl);
            Some(leases)
        }
        (Action::Renew { fence, .. }, OperationResponse::Ended) => {
            find(&leases, *fence).is_none().then_some(leases)
        }
        (Action::Release { fence, .. }, OperationResponse::Released) => {
            let place = find(&leases, *fence)?;
            leases.remove(place);
            Some(leases)
        }
        (Action::Release { fence, .. }, OperationResponse::Ended) => {
            find(&leases, *fence).is_none().then_some(leases)
        }
        (Action::List { .. }, OperationResponse::Seen { leases: seen }) => {
            let same =
                seen.len() == leases.len() && seen.iter().all(|one| find(&leases, one.fence).is_some());
            same.then_some(leases)
        }
        _ => None,
    }
}

/// A few operations of a real play, with some answers exchanged: many of them wrong, none for a simple reason.
fn any_history(seed: u64) -> History {
    let mut history = run_simple_server(seed, 6, false).history;
    let mut rng = TestRng(seed);
    history.operations.retain(|one| {
        one.answer.is_some()
            && !matches!(one.action, Action::Show { .. } | Action::Transfer { .. } | Action::Change { .. })
    });
    if rng.below(2) == 0 && !history.operations.is_empty() {
        let place = rng.index(history.operations.len());
        let operation = &mut history.operations[place];
        operation.invoked = operation.invoked.saturating_sub(rng.below(20) * 1_000);
        operation.ended = operation.ended.map(|ended| ended + rng.below(20) * 1_000);
    }
    history
}

proptest! {
    #![proptest_config(proptest_config())]

    #[test]
    fn histories_explained_by_exact_time_are_accepted(seed in any::<u64>()) {
        for number in 0..20 {
            let history = any_history(seed.wrapping_add(number));
            let operations: Vec<_> = history.operations.iter().collect();
            if is_explained(&operations, &[], 0) {
                for finding in linearizability::check(&history, DEFAULT_MAX_STEPS) {
                    prop_assert_eq!(&finding.verdict, &SearchVerdict::Holds, "{:#?}", history);
                }
            }
        }
    }
}
