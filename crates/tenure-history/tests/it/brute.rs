//! The search against exact time: whatever one clock explains exactly, the search must accept.

use proptest::prelude::*;
use tenure_history::linear::{self, ENOUGH, Verdict};
use tenure_history::{Action, Answer, History, Mode, Operation};

use crate::random::{Chance, config, play};

/// A lease with its exact end, in milliseconds.
#[derive(Clone)]
struct Lease {
    fence: u64,
    mode: Mode,
    end: u64,
    ttl: u64,
}

/// Whether these operations can have happened one after the other, each at a whole millisecond of its own time.
fn happens(rest: &[&Operation], leases: &[Lease], now: u64) -> bool {
    let Some(deadline) = rest.iter().map(|one| one.latest()).min() else { return true };
    (0..rest.len()).filter(|index| rest[*index].invoked <= deadline).any(|index| {
        let operation = rest[index];
        let others: Vec<_> =
            rest.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, one)| *one).collect();
        let (from, to) = (operation.invoked.div_ceil(1_000).max(now), operation.latest() / 1_000);
        // A few of the moments in its time: the first, the last, one between, and each at which a lease ends.
        let ends = leases.iter().map(|lease| lease.end);
        let mut moments =
            [from, to, from.midpoint(to)].into_iter().chain(ends).filter(|at| (from..=to).contains(at));
        moments.any(|at| act(operation, leases, at).is_some_and(|leases| happens(&others, &leases, at)))
    })
}

fn act(operation: &Operation, before: &[Lease], at: u64) -> Option<Vec<Lease>> {
    let mut leases: Vec<Lease> = before.iter().filter(|lease| lease.end > at).cloned().collect();
    let find = |leases: &[Lease], fence: u64| leases.iter().position(|lease| lease.fence == fence);
    match (&operation.action, operation.answer.as_ref()?) {
        (Action::Acquire { wants, .. }, Answer::Granted { leases: granted }) => {
            let (mode, ttl) = (wants[0].mode, wants[0].ttl_ms);
            let is_free = leases.iter().all(|lease| lease.mode.goes_with(mode));
            leases.push(Lease { fence: granted[0].fence, mode, end: at + ttl, ttl });
            is_free.then_some(leases)
        }
        (Action::Acquire { wants, .. }, Answer::Held { .. }) => {
            leases.iter().any(|lease| !lease.mode.goes_with(wants[0].mode)).then_some(leases)
        }
        (Action::Renew { fence, .. }, Answer::Renewed { .. }) => {
            let place = find(&leases, *fence)?;
            leases[place].end = leases[place].end.max(at + leases[place].ttl);
            Some(leases)
        }
        (Action::Renew { fence, .. }, Answer::Over) => find(&leases, *fence).is_none().then_some(leases),
        (Action::Release { fence, .. }, Answer::Released) => {
            let place = find(&leases, *fence)?;
            leases.remove(place);
            Some(leases)
        }
        (Action::Release { fence, .. }, Answer::Over) => find(&leases, *fence).is_none().then_some(leases),
        (Action::List { .. }, Answer::Seen { leases: seen }) => {
            let same =
                seen.len() == leases.len() && seen.iter().all(|one| find(&leases, one.fence).is_some());
            same.then_some(leases)
        }
        _ => None,
    }
}

/// A few operations of a real play, with some answers exchanged: many of them wrong, none for a simple reason.
fn any_history(seed: u64) -> History {
    let mut history = play(seed, 6, false).history;
    let mut chance = Chance(seed);
    history.operations.retain(|one| {
        one.answer.is_some()
            && !matches!(one.action, Action::Show { .. } | Action::Transfer { .. } | Action::Change { .. })
    });
    if chance.below(2) == 0 && !history.operations.is_empty() {
        let place = chance.index(history.operations.len());
        let operation = &mut history.operations[place];
        operation.invoked = operation.invoked.saturating_sub(chance.below(20) * 1_000);
        operation.ended = operation.ended.map(|ended| ended + chance.below(20) * 1_000);
    }
    history
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn histories_explained_by_exact_time_are_accepted(seed in any::<u64>()) {
        for number in 0..20 {
            let history = any_history(seed.wrapping_add(number));
            let operations: Vec<_> = history.operations.iter().collect();
            if happens(&operations, &[], 0) {
                for finding in linear::check(&history, ENOUGH) {
                    prop_assert_eq!(&finding.verdict, &Verdict::Holds, "{:#?}", history);
                }
            }
        }
    }
}
