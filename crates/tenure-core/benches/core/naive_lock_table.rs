//! What a home-made lock table does: one map and one sorted set, without queue, fences, history, quotas,
//! idempotency or a ledger. It shows what the rest costs.

use std::collections::{BTreeSet, HashMap};
use std::hint::black_box;

use crate::cpu_time::cpu_time_of;
use crate::workload::{BATCH, Rng, resource};

/// Who holds what until when, and what ends next.
pub struct NaiveLockTable {
    table: HashMap<String, (String, u64)>,
    expiries: BTreeSet<(u64, String)>,
    live: Vec<u64>,
    next_number: u64,
    random: Rng,
}

impl NaiveLockTable {
    pub fn with_leases(leases: usize) -> Self {
        let random = Rng(leases as u64);
        let mut peer = Self {
            table: HashMap::new(),
            expiries: BTreeSet::new(),
            live: Vec::with_capacity(leases),
            next_number: 0,
            random,
        };
        while peer.live.len() + BATCH <= leases {
            peer.acquire_batch();
        }
        peer
    }

    /// Nanoseconds of CPU for [`BATCH`] acquires, in place of as many that were released before.
    pub fn run_batch(&mut self) -> u64 {
        for _ in 0..BATCH {
            let index = self.random.below(self.live.len());
            let name = name(self.live.swap_remove(index));
            let (_, until) = self.table.remove(&name).expect("it is live");
            self.expiries.remove(&(until, name));
        }
        self.acquire_batch()
    }

    fn acquire_batch(&mut self) -> u64 {
        let request = |peer: &mut Self| {
            peer.next_number += 1;
            let seconds = [5, 30, 60, 600, 24 * 3600][peer.random.below(5)];
            let until = peer.next_number * 3 + seconds * 1_000_000;
            let holder = format!("agent-{:03}@host-{:02}", peer.random.below(1_000), peer.next_number % 50);
            (name(peer.next_number), holder, until)
        };
        let requests: Vec<_> = (0..BATCH).map(|_| request(self)).collect();
        self.live.extend(self.next_number - BATCH as u64 + 1..=self.next_number);
        cpu_time_of(|| {
            for (name, holder, until) in requests {
                if !self.table.contains_key(&name) {
                    self.expiries.insert((until, name.clone()));
                    black_box(self.table.insert(name, (holder, until)));
                }
            }
        })
    }
}

fn name(number: u64) -> String {
    resource(number).as_str().to_owned()
}
