//! The search against one that tries everything: no shortcut of it may change a verdict.

use proptest::prelude::*;

use super::part::{Part, parts_of};
use super::step::step;
use super::table::Table;
use super::{ENOUGH, Verdict, check};
use crate::history::History;
use crate::operation::{Action, Answer, Grant, Life, Mode, Operation, Seen, Want};

/// Whether any order explains the answers, found by trying all of them.
fn is_explained(history: &History, parts: &[&Part], table: &Table) -> bool {
    let answered = |part: &&&Part| !part.is_unknown(history);
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
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// A few operations with answers that may be right or not.
fn any_history(seed: u64) -> History {
    let mut chance = Chance(seed);
    let mut operations = Vec::new();
    let mut fences = 0;
    for number in 0..3 + chance.below(5) {
        let invoked = number * 3 + chance.below(6);
        let ended = invoked + 1 + chance.below(12);
        let mode = if chance.below(3) > 0 { Mode::Exclusive } else { Mode::Shared };
        let holder = format!("h{}", chance.below(3));
        let fence = 1 + chance.below(fences.max(1));
        let resource = "db".to_owned();
        // One key stands for one request, of one holder and mode.
        let key = (chance.below(3) == 0).then(|| format!("{holder}-{mode}"));
        let ttl_ms = 4 + chance.below(8);
        let (action, answer) = match chance.below(8) {
            0..=2 => {
                let wants = vec![Want { resource: resource.clone(), mode, ttl_ms }];
                let by = Some(format!("h{}", chance.below(3)));
                let answer = match chance.below(4) {
                    0 => Answer::Held { resource, by },
                    1 if key.is_some() => Answer::Over,
                    _ => {
                        fences += 1;
                        let again = key.is_some() && chance.below(3) == 0;
                        let fence = if again { fence } else { fences };
                        Answer::Granted {
                            leases: vec![Grant { fence, id: None, valid_for_ms: ttl_ms, ttl_ms }],
                        }
                    }
                };
                (Action::Acquire { wants, holder, wait_ms: 0, key }, answer)
            }
            3 => {
                let over = chance.below(3) == 0;
                let answer = if over { Answer::Over } else { Answer::Renewed { valid_for_ms: ttl_ms } };
                (Action::Renew { fence, resource, ttl_ms: Some(ttl_ms) }, answer)
            }
            4 => {
                let answer = if chance.below(4) == 0 { Answer::Over } else { Answer::Released };
                (Action::Release { fence, resource }, answer)
            }
            5 => {
                fences += 1;
                let leases = vec![Grant { fence: fences, id: None, valid_for_ms: ttl_ms, ttl_ms }];
                (Action::Change { fence, resource, holder, mode }, Answer::Granted { leases })
            }
            _ => {
                let state = [Life::Active, Life::Expired, Life::Released]
                    [usize::try_from(chance.below(3)).unwrap_or(0)];
                let listed = chance.below(2) == 0;
                let state = if listed { Life::Active } else { state };
                let seen = Seen { fence, holder, mode, state, remaining_ms: chance.below(8) };
                let leases = if listed && chance.below(2) == 0 { Vec::new() } else { vec![seen] };
                let action =
                    if listed { Action::List { resource } } else { Action::Show { fence, resource } };
                (action, Answer::Seen { leases })
            }
        };
        let (ended, answer) = match chance.below(5) {
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
            let parts = parts_of(&history, "db");
            let expected = is_explained(&history, &parts.iter().collect::<Vec<_>>(), &Table::default());
            let finding = check(&history, ENOUGH).pop();
            let found = finding.is_none_or(|finding| finding.verdict == Verdict::Holds);
            prop_assert_eq!(found, expected, "{:#?}", history);
        }
    }
}

#[test]
fn generated_histories_include_valid_and_invalid_ones() {
    let holds = |seed: &u64| {
        check(&any_history(*seed), ENOUGH).iter().all(|finding| finding.verdict == Verdict::Holds)
    };
    let count = (0..2_000).filter(holds).count();
    assert!((100..1_900).contains(&count), "{count} of 2000");
}
