//! The search against one that tries everything: no shortcut of it may change a verdict.

use proptest::prelude::*;

use super::lease_table::LeaseTable;
use super::resource_operation::{ResourceOperation, operations_on};
use super::step::step;
use super::{DEFAULT_MAX_STEPS, SearchVerdict, check};
use crate::history::History;
use crate::operation::{
    Action, Grant, LeaseMode, LeaseRequest, ObservedLease, ObservedState, Operation, OperationResponse,
};

/// Whether any order explains the answers, found by trying all of them.
fn is_explained(history: &History, parts: &[&ResourceOperation], table: &LeaseTable) -> bool {
    let answered = |part: &&&ResourceOperation| !part.is_unknown(history);
    let Some(deadline) = parts.iter().filter(answered).map(|part| part.ended).min() else { return true };
    let may_be_next = (0..parts.len()).filter(|index| parts[*index].invoked <= deadline);
    may_be_next.into_iter().any(|index| {
        let Ok(table) = step(table, parts[index]) else { return false };
        let rest: Vec<_> =
            parts.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, part)| *part).collect();
        is_explained(history, &rest, &table)
    })
}

/// A small generator (SplitMix64).
struct HistoryRng(u64);

impl HistoryRng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// A few operations with answers that may be right or not.
fn any_history(seed: u64) -> History {
    let mut rng = HistoryRng(seed);
    let mut operations = Vec::new();
    let mut fences = 0;
    for number in 0..3 + rng.below(5) {
        let invoked = number * 3 + rng.below(6);
        let ended = invoked + 1 + rng.below(12);
        let mode = if rng.below(3) > 0 { LeaseMode::Exclusive } else { LeaseMode::Shared };
        let holder = format!("h{}", rng.below(3));
        let fence = 1 + rng.below(fences.max(1));
        let resource = "db".to_owned();
        // One key stands for one request, of one holder and mode.
        let key = (rng.below(3) == 0).then(|| format!("{holder}-{mode}"));
        let ttl_ms = 4 + rng.below(8);
        let (action, answer) = match rng.below(8) {
            0..=2 => {
                let requests = vec![LeaseRequest { resource: resource.clone(), mode, ttl_ms }];
                let by = Some(format!("h{}", rng.below(3)));
                let answer = match rng.below(4) {
                    0 => OperationResponse::Held { resource, by },
                    1 if key.is_some() => OperationResponse::Ended,
                    _ => {
                        fences += 1;
                        let again = key.is_some() && rng.below(3) == 0;
                        let fence = if again { fence } else { fences };
                        OperationResponse::Granted {
                            leases: vec![Grant { fence, id: None, valid_for_ms: ttl_ms, ttl_ms }],
                        }
                    }
                };
                (Action::Acquire { wants: requests, holder, wait_ms: 0, key }, answer)
            }
            3 => {
                let is_ended = rng.below(3) == 0;
                let answer = if is_ended {
                    OperationResponse::Ended
                } else {
                    OperationResponse::Renewed { valid_for_ms: ttl_ms }
                };
                (Action::Renew { fence, resource, ttl_ms: Some(ttl_ms) }, answer)
            }
            4 => {
                let answer =
                    if rng.below(4) == 0 { OperationResponse::Ended } else { OperationResponse::Released };
                (Action::Release { fence, resource }, answer)
            }
            5 => {
                fences += 1;
                let leases = vec![Grant { fence: fences, id: None, valid_for_ms: ttl_ms, ttl_ms }];
                (Action::Change { fence, resource, holder, mode }, OperationResponse::Granted { leases })
            }
            _ => {
                let state = [ObservedState::Active, ObservedState::Expired, ObservedState::Released]
                    [usize::try_from(rng.below(3)).unwrap_or(0)];
                let listed = rng.below(2) == 0;
                let state = if listed { ObservedState::Active } else { state };
                let seen = ObservedLease { fence, holder, mode, state, remaining_ms: rng.below(8) };
                let leases = if listed && rng.below(2) == 0 { Vec::new() } else { vec![seen] };
                let action =
                    if listed { Action::List { resource } } else { Action::Show { fence, resource } };
                (action, OperationResponse::Seen { leases })
            }
        };
        let (ended, answer) = match rng.below(5) {
            0 => (None, None),
            1 => (Some(ended * 1_000), None),
            _ => (Some(ended * 1_000), Some(answer)),
        };
        operations.push(Operation {
            client: "c".to_owned(),
            invoked: invoked * 1_000,
            ended,
            action,
            answer,
        });
    }
    History { clock: None, operations }
}

proptest! {
    #[test]
    fn the_search_agrees_with_an_exhaustive_search(seed in any::<u64>()) {
        // Many for each case: most are wrong for a simple reason.
        for number in 0..50 {
            let history = any_history(seed.wrapping_add(number));
            let parts = operations_on(&history, "db");
            let expected = is_explained(&history, &parts.iter().collect::<Vec<_>>(), &LeaseTable::default());
            let finding = check(&history, DEFAULT_MAX_STEPS).pop();
            let found = finding.is_none_or(|finding| finding.verdict == SearchVerdict::Holds);
            prop_assert_eq!(found, expected, "{:#?}", history);
        }
    }
}

#[test]
fn generated_histories_include_valid_and_invalid_ones() {
    let holds = |seed: &u64| {
        check(&any_history(*seed), DEFAULT_MAX_STEPS)
            .iter()
            .all(|finding| finding.verdict == SearchVerdict::Holds)
    };
    let count = (0..2_000).filter(holds).count();
    assert!((100..1_900).contains(&count), "{count} of 2000");
}
