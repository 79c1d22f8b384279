//! Random executions of a simple server: accepted as they are, and mostly caught when an answer is changed.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tenure_history::ledger::{self, LedgerEntry, LedgerEvent};
use tenure_history::linearizability::{self, DEFAULT_MAX_STEPS, SearchVerdict};
use tenure_history::{
    Action, Grant, History, LeaseMode, LeaseRequest, ObservedLease, ObservedState, Operation,
    OperationResponse, fences,
};

use crate::history_syntax::CLOCK;

/// Failing cases are kept beside the crate's other ones, out of the repository.
pub fn proptest_config() -> ProptestConfig {
    let file =
        FileFailurePersistence::Direct(concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/it.txt"));
    ProptestConfig { failure_persistence: Some(Box::new(file)), ..ProptestConfig::default() }
}

/// A small generator (SplitMix64).
pub struct TestRng(pub u64);

impl TestRng {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }
}

/// What a play leaves behind.
pub struct SimulatedRun {
    pub history: History,
    pub entries: Vec<LedgerEntry>,
}

struct ServerLease {
    fence: u64,
    holder: String,
    mode: LeaseMode,
    end: u64,
    ttl: u64,
}

struct SimpleServer {
    leases: Vec<ServerLease>,
    fences: u64,
    entries: Vec<LedgerEntry>,
}

impl SimpleServer {
    fn record(&mut self, at: u64, event: LedgerEvent) {
        let seq = self.entries.len() as u64 + 1;
        self.entries.push(LedgerEntry { seq, at, event });
    }

    fn expire(&mut self, at: u64) {
        while let Some(place) = self.leases.iter().position(|lease| lease.end <= at) {
            let fence = self.leases.remove(place).fence;
            self.record(at, LedgerEvent::Expired { fence });
        }
    }

    fn acquire(&mut self, at: u64, holder: &str, request: &LeaseRequest) -> OperationResponse {
        let LeaseRequest { resource, mode, ttl_ms } = request.clone();
        if let Some(other) = self.leases.iter().find(|lease| !lease.mode.is_compatible(mode)) {
            return OperationResponse::Held { resource, by: Some(other.holder.clone()) };
        }
        self.fences += 1;
        let (fence, ttl) = (self.fences, ttl_ms * 1_000);
        let (holder, end) = (holder.to_owned(), at + ttl);
        let id = format!("0-{fence}");
        self.record(
            at,
            LedgerEvent::Issued {
                fence,
                id,
                resource,
                holder: holder.clone(),
                mode,
                expires_at: end,
                ttl,
                ticket: None,
                continues: None,
            },
        );
        self.leases.push(ServerLease { fence, holder, mode, end, ttl });
        OperationResponse::Granted { leases: vec![Grant { fence, id: None, valid_for_ms: ttl_ms, ttl_ms }] }
    }

    fn act(&mut self, at: u64, action: &Action) -> OperationResponse {
        let find = |leases: &[ServerLease], fence: u64| leases.iter().position(|lease| lease.fence == fence);
        match action {
            Action::Acquire { wants: requests, holder, .. } => self.acquire(at, holder, &requests[0]),
            Action::Renew { fence, .. } => {
                let Some(place) = find(&self.leases, *fence) else { return OperationResponse::Ended };
                let lease = &mut self.leases[place];
                lease.end = lease.end.max(at + lease.ttl);
                let (end, valid_for_ms) = (lease.end, (lease.end - at) / 1_000);
                self.record(at, LedgerEvent::Renewed { fence: *fence, expires_at: end });
                OperationResponse::Renewed { valid_for_ms }
            }
            Action::Release { fence, .. } => {
                let Some(place) = find(&self.leases, *fence) else { return OperationResponse::Ended };
                self.leases.remove(place);
                self.record(at, LedgerEvent::Released { fence: *fence });
                OperationResponse::Released
            }
            _ => {
                let seen = |lease: &ServerLease| ObservedLease {
                    fence: lease.fence,
                    holder: lease.holder.clone(),
                    mode: lease.mode,
                    state: ObservedState::Active,
                    remaining_ms: (lease.end - at) / 1_000,
                };
                OperationResponse::Seen { leases: self.leases.iter().map(seen).collect() }
            }
        }
    }
}

/// A play of so many operations by four clients, each of which is answered before it asks again.
pub fn run_simple_server(seed: u64, count: usize, with_losses: bool) -> SimulatedRun {
    let mut rng = TestRng(seed);
    let clock = LedgerEvent::Clock { clock: CLOCK.to_owned(), microseconds: 0 };
    let mut server = SimpleServer {
        leases: Vec::new(),
        fences: 0,
        entries: vec![LedgerEntry { seq: 1, at: 0, event: clock }],
    };
    let mut free_at = [0; 4];
    let mut held: Vec<(usize, u64)> = Vec::new();
    let (mut operations, mut at) = (Vec::new(), 10_000);
    while operations.len() < count {
        at += rng.below(8) * 1_000;
        let client = rng.index(4);
        if free_at[client] >= at {
            continue;
        }
        let invoked = at - rng.below(at - free_at[client]).min(30_000);
        let ended = at + rng.below(30) * 1_000;
        free_at[client] = ended + 1;
        let resource = "db".to_owned();
        let own: Vec<u64> =
            held.iter().filter(|(owner, _)| *owner == client).map(|(_, fence)| *fence).collect();
        let action = match rng.below(10) {
            0..=2 if !own.is_empty() => Action::Renew { fence: own[own.len() - 1], resource, ttl_ms: None },
            3..=5 if !own.is_empty() => Action::Release { fence: own[own.len() - 1], resource },
            0..=1 => Action::List { resource },
            _ => {
                let mode = if rng.below(2) == 0 { LeaseMode::Exclusive } else { LeaseMode::Shared };
                let wants = vec![LeaseRequest { resource, mode, ttl_ms: 20 + rng.below(60) }];
                Action::Acquire { wants, holder: format!("h{client}"), wait_ms: 0, key: None }
            }
        };
        let client_name = format!("c{client}");
        server.expire(at);
        let is_lost = with_losses && rng.below(8) == 0;
        if is_lost {
            if rng.below(2) == 0 {
                server.act(at, &action);
            }
            let ended = (rng.below(2) == 0).then_some(ended);
            operations.push(Operation { client: client_name, invoked, ended, action, answer: None });
            continue;
        }
        let answer = server.act(at, &action);
        if let OperationResponse::Granted { leases } = &answer {
            held.push((client, leases[0].fence));
        }
        operations.push(Operation {
            client: client_name,
            invoked,
            ended: Some(ended),
            action,
            answer: Some(answer),
        });
    }
    let history = History { clock: Some(CLOCK.to_owned()), operations };
    SimulatedRun { history, entries: server.entries }
}

/// Whether anything is found in a history, by clients' answers alone or with the ledger.
fn is_caught(history: &History, entries: &[LedgerEntry]) -> (bool, bool) {
    let found = linearizability::check(history, DEFAULT_MAX_STEPS);
    let by_order = found.iter().any(|finding| matches!(finding.verdict, SearchVerdict::Violated(_)));
    (by_order || !fences::check(history).is_empty(), !ledger::check(history, entries).is_empty())
}

/// Another answer than the one that was given.
fn falsify(rng: &mut TestRng, history: &mut History) {
    let place = rng.index(history.operations.len());
    let operation = &mut history.operations[place];
    let Some(answer) = &mut operation.answer else { return };
    *answer = match (&operation.action, &*answer) {
        (Action::Acquire { wants, .. }, OperationResponse::Granted { .. }) => {
            OperationResponse::Held { resource: wants[0].resource.clone(), by: Some("h9".to_owned()) }
        }
        (Action::Acquire { wants, .. }, _) => {
            let (fence, ttl_ms) = (1 + rng.below(40), wants[0].ttl_ms);
            OperationResponse::Granted {
                leases: vec![Grant { fence, id: None, valid_for_ms: ttl_ms, ttl_ms }],
            }
        }
        (Action::Renew { .. }, OperationResponse::Renewed { .. })
        | (Action::Release { .. }, OperationResponse::Released) => OperationResponse::Ended,
        (Action::Renew { .. }, _) => OperationResponse::Renewed { valid_for_ms: 70 },
        (Action::Release { .. }, _) => OperationResponse::Released,
        (_, OperationResponse::Seen { leases }) if !leases.is_empty() => {
            OperationResponse::Seen { leases: leases[1..].to_vec() }
        }
        _ => {
            let seen = ObservedLease {
                fence: 1,
                holder: "h0".to_owned(),
                mode: LeaseMode::Shared,
                state: ObservedState::Active,
                remaining_ms: 5,
            };
            OperationResponse::Seen { leases: vec![seen] }
        }
    };
}

proptest! {
    #![proptest_config(proptest_config())]

    #[test]
    fn histories_of_a_simple_server_are_accepted(seed in any::<u64>()) {
        let SimulatedRun { history, entries } = run_simple_server(seed, 60, true);
        for finding in linearizability::check(&history, DEFAULT_MAX_STEPS) {
            prop_assert_eq!(&finding.verdict, &SearchVerdict::Holds, "{:#?}", history);
        }
        prop_assert_eq!(fences::check(&history), []);
        prop_assert_eq!(ledger::check(&history, &entries), []);
    }
}

#[test]
fn falsified_answers_are_detected_mostly_by_the_search_and_nearly_always_by_the_ledger() {
    let (mut by_answers, mut by_ledger) = (0, 0);
    for seed in 0..400 {
        let SimulatedRun { mut history, entries } = run_simple_server(seed, 60, false);
        falsify(&mut TestRng(seed), &mut history);
        let (order, ledger) = is_caught(&history, &entries);
        by_answers += u32::from(order);
        by_ledger += u32::from(ledger);
    }
    assert!(by_answers > 240, "{by_answers} of 400 by other answers");
    assert!(by_ledger > 360, "{by_ledger} of 400 by the ledger");
}

#[test]
fn the_search_takes_under_ten_steps_per_operation() {
    for seed in 0..5 {
        let SimulatedRun { mut history, .. } = run_simple_server(seed, 5_000, true);
        // Whoever was not answered is known to be gone soon after; if hundreds could still happen at any time, the
        // search would sometimes have to give up.
        for operation in &mut history.operations {
            operation.ended = operation.ended.or(Some(operation.invoked + 61_000));
        }
        let findings = linearizability::check(&history, DEFAULT_MAX_STEPS);
        assert_eq!(findings[0].verdict, SearchVerdict::Holds);
        let effort = findings[0].effort;
        assert!(effort.steps < 10 * effort.operations, "seed {seed}: {effort:?}");
    }
}
