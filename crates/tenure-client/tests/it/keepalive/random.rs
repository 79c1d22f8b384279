//! Answers in any order, twice, to anything that was ever sent, and a clock that jumps forward.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tenure_client::{AttemptId, Effect, Input, KeepAlive, ReplyOutcome};
use tenure_core::kernel::{Fence, TickDuration};

#[derive(Debug, Clone)]
enum Action {
    Woken,
    /// At the very instant that the keeper asked for.
    WokenOnTime,
    /// To one of the newest messages, counted back.
    Replied {
        back: u64,
        outcome: ReplyOutcome,
    },
    Stop,
}

/// What was found is tried again on the next run; the file is not part of the repository.
pub fn proptest_config() -> ProptestConfig {
    let file = FileFailurePersistence::Direct("proptest-regressions/keeper.txt");
    ProptestConfig { failure_persistence: Some(Box::new(file)), ..ProptestConfig::default() }
}

fn outcome() -> impl Strategy<Value = ReplyOutcome> {
    let fence = prop_oneof![9 => Just(Fence(7)), 1 => Just(Fence(8))];
    let valid = (fence, 0..12_000_u64).prop_map(|(fence, milliseconds)| ReplyOutcome::Valid {
        fence,
        valid_for: TickDuration::from_millis(milliseconds),
    });
    prop_oneof![
        12 => valid,
        2 => Just(ReplyOutcome::Queued),
        3 => Just(ReplyOutcome::Failed),
        1 => prop_oneof![Just(ReplyOutcome::Refused), Just(ReplyOutcome::Ended)],
    ]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => Just(Action::Woken),
        10 => Just(Action::WokenOnTime),
        12 => (0..4_u64, outcome()).prop_map(|(back, outcome)| Action::Replied { back, outcome }),
        1 => Just(Action::Stop),
    ]
}

/// Mostly moments; sometimes the machine slept.
fn delay() -> impl Strategy<Value = u64> {
    prop_oneof![5 => 0..50_000_u64, 3 => 50_000..2_000_000_u64, 1 => 2_000_000..20_000_000_u64]
}

/// A keeper, and what it was ever promised.
struct CheckedKeepAlive {
    keep_alive: KeepAlive,
    now: u64,
    sent: BTreeMap<AttemptId, u64>,
    /// For each lease, the latest end that any answer so far allows.
    promised: BTreeMap<Fence, u64>,
    held: usize,
    ended: usize,
}

impl CheckedKeepAlive {
    fn step(&mut self, input: Input, random: u64) {
        if let Input::Replied { request_id: attempt, outcome: ReplyOutcome::Valid { fence, valid_for } } =
            &input
            && let Some(sent) = self.sent.get(attempt)
        {
            // 99.5 % of it, rounded down, less 50 ms, from when the message left.
            let until = sent + (valid_for.0 * 199 / 200).saturating_sub(50_000);
            let promised = self.promised.entry(*fence).or_default();
            *promised = until.max(*promised);
        }
        let had_ended = self.keep_alive.has_ended();
        let woken = input == Input::Woken;
        for effect in self.keep_alive.step(input, self.now, random) {
            match effect {
                Effect::Send { request_id: attempt, .. } => {
                    assert!(
                        self.sent.insert(attempt, self.now).is_none(),
                        "{attempt:?} stands for two messages"
                    );
                }
                Effect::Held(_) => self.held += 1,
                Effect::Lost | Effect::Refused => self.ended += 1,
            }
        }
        if woken {
            let wake = self.keep_alive.wake_at();
            assert!(wake.is_none_or(|at| at > self.now), "woken at {}, wants {wake:?}", self.now);
        }
        self.check(had_ended);
    }

    fn check(&self, had_ended: bool) {
        for fence in [Fence(7), Fence(8)] {
            let until = self.promised.get(&fence).copied().unwrap_or(0).max(self.now);
            for at in [until, until + 1, until + 10_000_000] {
                let believed = self.keep_alive.held_fence(at);
                assert_ne!(believed, Some(fence), "believed at {at}, promised until {until}");
            }
        }
        assert!(self.held <= 1 && self.ended <= 1, "held {} times, ended {} times", self.held, self.ended);
        assert!(!had_ended || self.keep_alive.has_ended(), "what is over came back");
        if self.keep_alive.has_ended() {
            assert_eq!(self.keep_alive.held_fence(self.now), None);
            let has_timer = self.keep_alive.wake_at().is_some();
            assert_eq!(has_timer, !self.keep_alive.is_done(), "a timer is for what is still to be said");
        } else {
            assert!(self.keep_alive.wake_at().is_some(), "it sleeps for ever");
        }
    }
}

proptest! {
    #![proptest_config(proptest_config())]

    #[test]
    fn deadline_never_exceeds_the_granted_validity_and_timers_advance(
        ttl in 1_000..10_000_u64,
        acts in proptest::collection::vec((delay(), any::<u64>(), action()), 1..200),
    ) {
        let keep_alive = KeepAlive::new(TickDuration::from_millis(ttl));
        let (sent, promised) = (BTreeMap::new(), BTreeMap::new());
        let mut watched = CheckedKeepAlive { keep_alive, now: 1_000_000, sent, promised, held: 0, ended: 0 };
        watched.step(Input::Start, 0);
        for (delay, random, act) in acts {
            let input = match act {
                Action::WokenOnTime => {
                    watched.now = watched.keep_alive.wake_at().unwrap_or(0).max(watched.now);
                    watched.step(Input::Woken, random);
                    continue;
                }
                Action::Woken => Input::Woken,
                Action::Replied { back, outcome } => {
                    let newest = watched.sent.keys().next_back().map_or(0, |attempt| attempt.0);
                    Input::Replied { request_id: AttemptId(newest.saturating_sub(back)), outcome }
                }
                Action::Stop => Input::Stop,
            };
            watched.now += delay;
            watched.step(input, random);
        }
    }
}
