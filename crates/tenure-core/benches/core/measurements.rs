//! What is measured, and in which order.

use std::collections::BTreeMap;
use std::hint::black_box;

use tenure_core::kernel::{ClockAnchor, Decision, EncodeContext, Event, Fence, LedgerTag, decide, encode};

use crate::cpu_time::{Series, cpu_time_of};
use crate::naive_lock_table::NaiveLockTable;
use crate::workload::{BATCH, TimedCommand, Workload, apply_all, decide_and_apply};

/// How many live leases there are.
pub const SIZES: [usize; 3] = [1_000, 100_000, 1_000_000];

/// How many ended leases the state remembers: all of them are there before anything is measured.
const ENDED_KEPT: usize = 1 << 16;

/// How many batches one repetition of one measurement has.
const BATCHES: usize = 128;

/// Nanoseconds of CPU per operation, by what was measured and how many leases lived.
pub type Measurements = BTreeMap<(Operation, usize), Series>;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Acquire,
    Decide,
    Apply,
    Refused,
    Renew,
    Release,
    Sweep,
    Encode,
    Peer,
}

impl Operation {
    pub const ALL: [Operation; 9] = [
        Operation::Acquire,
        Operation::Decide,
        Operation::Apply,
        Operation::Refused,
        Operation::Renew,
        Operation::Release,
        Operation::Sweep,
        Operation::Encode,
        Operation::Peer,
    ];

    /// What people call it.
    pub fn title(self) -> &'static str {
        match self {
            Operation::Acquire => "acquire: decide and apply",
            Operation::Decide => "acquire: decide alone",
            Operation::Apply => "acquire: apply alone",
            Operation::Refused => "acquire refused, held",
            Operation::Renew => "renew",
            Operation::Release => "release",
            Operation::Sweep => "sweep, per lease",
            Operation::Encode => "encode one event",
            Operation::Peer => "map and sorted set alone",
        }
    }

    /// What programs call it.
    pub fn key(self) -> &'static str {
        match self {
            Operation::Acquire => "acquire",
            Operation::Decide => "acquire_decide",
            Operation::Apply => "acquire_apply",
            Operation::Refused => "refused",
            Operation::Renew => "renew",
            Operation::Release => "release",
            Operation::Sweep => "sweep",
            Operation::Encode => "encode",
            Operation::Peer => "peer",
        }
    }
}

/// Measures everything `repetitions` times, one size after the other within each, so that whatever disturbs
/// the machine disturbs all alike.
pub fn measure(repetitions: usize) -> Measurements {
    let mut figures = Measurements::new();
    let mut workloads = SIZES.map(|size| (size, steady(size), NaiveLockTable::with_leases(size)));
    for _ in 0..repetitions {
        for (size, world, peer) in &mut workloads {
            let mut record = |what, nanoseconds: u64| {
                let each = nanoseconds as f64 / (BATCHES * BATCH) as f64;
                figures.entry((what, *size)).or_default().push(each);
            };
            let [released, acquired] = sum(|| [release(world), acquire(world)]);
            record(Operation::Release, released);
            record(Operation::Acquire, acquired);
            let [decided, applied, encoded] = sum(|| {
                release(world);
                acquire_decide_then_apply(world)
            });
            record(Operation::Decide, decided);
            record(Operation::Apply, applied);
            record(Operation::Encode, encoded);
            let [refused] = sum(|| [perform_all(world, Workload::contended_acquires)]);
            record(Operation::Refused, refused);
            let [renewed] = sum(|| [perform_all(world, Workload::renewals)]);
            record(Operation::Renew, renewed);
            let [peer] = sum(|| [peer.run_batch()]);
            record(Operation::Peer, peer);
            assert_eq!(world.state.lease_count(), *size, "what should be refused or renewed was");
        }
    }
    for _ in 0..repetitions.min(11) {
        for (size, world, _) in &mut workloads {
            let each = sweep(world, *size);
            figures.entry((Operation::Sweep, *size)).or_default().push(each);
        }
    }
    figures
}

/// A world with `size` leases in which as many leases ended as are ever remembered.
fn steady(size: usize) -> Workload {
    let mut world = Workload::empty(size);
    world.fill(size);
    for _ in 0..ENDED_KEPT / BATCH + 1 {
        release(&mut world);
        acquire(&mut world);
    }
    world
}

fn sum<const N: usize>(mut batch: impl FnMut() -> [u64; N]) -> [u64; N] {
    let mut total = [0; N];
    for _ in 0..BATCHES {
        total.iter_mut().zip(batch()).for_each(|(total, one)| *total += one);
    }
    total
}

/// The time that `requests` take. Each decision is dropped within it: somebody has to.
fn perform_all(world: &mut Workload, requests: impl FnOnce(&mut Workload) -> Vec<TimedCommand>) -> u64 {
    let requests = requests(world);
    cpu_time_of(|| {
        requests.iter().for_each(|request| drop(black_box(decide_and_apply(&mut world.state, request))))
    })
}

fn release(world: &mut Workload) -> u64 {
    perform_all(world, Workload::releases)
}

fn acquire(world: &mut Workload) -> u64 {
    let taken = perform_all(world, |world| world.acquires(BATCH));
    world.record_grants(BATCH);
    taken
}

/// Decides a whole batch on one state, then applies it. The fences are corrected in between, because each
/// of the decisions took itself for the next.
fn acquire_decide_then_apply(world: &mut Workload) -> [u64; 3] {
    let requests = world.acquires(BATCH);
    let mut decisions: Vec<Decision> = Vec::with_capacity(BATCH);
    let deciding = cpu_time_of(|| {
        let decided = requests.iter().map(|request| decide(&world.state, &request.command, request.at));
        decisions.extend(decided);
    });
    for (behind, decision) in decisions.iter_mut().enumerate() {
        let [Event::Issued(issued)] = &mut decision.events[..] else { unreachable!("nobody is in the way") };
        issued.fence = Fence(issued.fence.0 + behind as u64);
    }
    let applying = cpu_time_of(|| decisions.iter().for_each(|one| apply_all(&mut world.state, &one.events)));
    world.record_grants(BATCH);
    let stamp = EncodeContext { tag: LedgerTag(0xbe9c), anchor: ClockAnchor::default(), signature: &[7; 64] };
    let encoding =
        cpu_time_of(|| decisions.iter().for_each(|one| drop(black_box(encode(&one.events[0], stamp)))));
    [deciding, applying, encoding]
}

/// Lets leases run out, and says what announcing one of some thousands costs.
fn sweep(world: &mut Workload, size: usize) -> f64 {
    let (mut total, mut swept) = (0, 0);
    while swept < BATCHES * BATCH {
        world.expire_shortest();
        let mut before = usize::MAX;
        while world.state.lease_count() < before {
            before = world.state.lease_count();
            let taken = perform_all(world, |world| vec![world.sweep()]);
            if swept < BATCHES * BATCH {
                total += taken;
                swept += before - world.state.lease_count();
            }
        }
        world.remove_expired();
        world.fill(size);
    }
    total as f64 / swept as f64
}
