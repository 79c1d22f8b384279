//! What is measured, and in which order.

use std::collections::BTreeMap;
use std::hint::black_box;

use tenure_core::kernel::{Anchor, Decision, Event, Fence, LedgerTag, Stamp, decide, encode};

use crate::clock::{Series, timed};
use crate::peer::Peer;
use crate::world::{BATCH, Request, World, apply_all, perform};

/// How many live leases there are.
pub const SIZES: [usize; 3] = [1_000, 100_000, 1_000_000];

/// How many ended leases the state remembers: all of them are there before anything is measured.
const ENDED_KEPT: usize = 1 << 16;

/// How many batches one repetition of one measurement has.
const BATCHES: usize = 128;

/// Nanoseconds of CPU per operation, by what was measured and how many leases lived.
pub type Figures = BTreeMap<(What, usize), Series>;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
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

impl What {
    pub const ALL: [What; 9] = [
        What::Acquire,
        What::Decide,
        What::Apply,
        What::Refused,
        What::Renew,
        What::Release,
        What::Sweep,
        What::Encode,
        What::Peer,
    ];

    /// What people call it.
    pub fn title(self) -> &'static str {
        match self {
            What::Acquire => "acquire: decide and apply",
            What::Decide => "acquire: decide alone",
            What::Apply => "acquire: apply alone",
            What::Refused => "acquire refused, held",
            What::Renew => "renew",
            What::Release => "release",
            What::Sweep => "sweep, per lease",
            What::Encode => "encode one event",
            What::Peer => "map and sorted set alone",
        }
    }

    /// What programs call it.
    pub fn key(self) -> &'static str {
        match self {
            What::Acquire => "acquire",
            What::Decide => "acquire_decide",
            What::Apply => "acquire_apply",
            What::Refused => "refused",
            What::Renew => "renew",
            What::Release => "release",
            What::Sweep => "sweep",
            What::Encode => "encode",
            What::Peer => "peer",
        }
    }
}

/// Measures everything `repetitions` times, one size after the other within each, so that whatever disturbs
/// the machine disturbs all alike.
pub fn measure(repetitions: usize) -> Figures {
    let mut figures = Figures::new();
    let mut worlds = SIZES.map(|size| (size, steady(size), Peer::with_leases(size)));
    for _ in 0..repetitions {
        for (size, world, peer) in &mut worlds {
            let mut note = |what, nanoseconds: u64| {
                let each = nanoseconds as f64 / (BATCHES * BATCH) as f64;
                figures.entry((what, *size)).or_default().push(each);
            };
            let [released, acquired] = sum(|| [release(world), acquire(world)]);
            note(What::Release, released);
            note(What::Acquire, acquired);
            let [decided, applied, encoded] = sum(|| {
                release(world);
                acquire_in_two_steps(world)
            });
            note(What::Decide, decided);
            note(What::Apply, applied);
            note(What::Encode, encoded);
            let [refused] = sum(|| [all(world, World::refused_acquires)]);
            note(What::Refused, refused);
            let [renewed] = sum(|| [all(world, World::renewals)]);
            note(What::Renew, renewed);
            let [peer] = sum(|| [peer.turn()]);
            note(What::Peer, peer);
            assert_eq!(world.state.live_leases(), *size, "what should be refused or renewed was");
        }
    }
    for _ in 0..repetitions.min(11) {
        for (size, world, _) in &mut worlds {
            let each = sweep(world, *size);
            figures.entry((What::Sweep, *size)).or_default().push(each);
        }
    }
    figures
}

/// A world with `size` leases in which as many leases ended as are ever remembered.
fn steady(size: usize) -> World {
    let mut world = World::empty(size);
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
fn all(world: &mut World, requests: impl FnOnce(&mut World) -> Vec<Request>) -> u64 {
    let requests = requests(world);
    timed(|| requests.iter().for_each(|request| drop(black_box(perform(&mut world.state, request)))))
}

fn release(world: &mut World) -> u64 {
    all(world, World::releases)
}

fn acquire(world: &mut World) -> u64 {
    let taken = all(world, |world| world.acquires(BATCH));
    world.note_granted(BATCH);
    taken
}

/// Decides a whole batch on one state, then applies it. The fences are corrected in between, because each
/// of the decisions took itself for the next.
fn acquire_in_two_steps(world: &mut World) -> [u64; 3] {
    let requests = world.acquires(BATCH);
    let mut decisions: Vec<Decision> = Vec::with_capacity(BATCH);
    let deciding = timed(|| {
        let decided = requests.iter().map(|request| decide(&world.state, &request.command, request.at));
        decisions.extend(decided);
    });
    for (behind, decision) in decisions.iter_mut().enumerate() {
        let [Event::Issued(issued)] = &mut decision.events[..] else { unreachable!("nobody is in the way") };
        issued.fence = Fence(issued.fence.0 + behind as u64);
    }
    let applying = timed(|| decisions.iter().for_each(|one| apply_all(&mut world.state, &one.events)));
    world.note_granted(BATCH);
    let stamp = Stamp { tag: LedgerTag(0xbe9c), anchor: Anchor::default(), signature: &[7; 64] };
    let encoding = timed(|| decisions.iter().for_each(|one| drop(black_box(encode(&one.events[0], stamp)))));
    [deciding, applying, encoding]
}

/// Lets leases run out, and says what announcing one of some thousands costs.
fn sweep(world: &mut World, size: usize) -> f64 {
    let (mut total, mut swept) = (0, 0);
    while swept < BATCHES * BATCH {
        world.let_some_run_out();
        let mut before = usize::MAX;
        while world.state.live_leases() < before {
            before = world.state.live_leases();
            let taken = all(world, |world| vec![world.sweep()]);
            if swept < BATCHES * BATCH {
                total += taken;
                swept += before - world.state.live_leases();
            }
        }
        world.note_swept();
        world.fill(size);
    }
    total as f64 / swept as f64
}
