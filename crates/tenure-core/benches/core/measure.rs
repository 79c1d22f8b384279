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
const BATCHES: usize = 32;

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
            let mut note = |what, total: u64, count: usize| {
                figures.entry((what, *size)).or_default().push(total as f64 / count as f64);
            };
            let [release, acquire] = sum(|| [release(world), acquire(world)]);
            note(What::Release, release, BATCHES * BATCH);
            note(What::Acquire, acquire, BATCHES * BATCH);
            let [_, decide, apply, encode] = sum(|| {
                let released = release_batch(world);
                let [decide, apply, encode] = acquire_in_two_steps(world);
                [released, decide, apply, encode]
            });
            note(What::Decide, decide, BATCHES * BATCH);
            note(What::Apply, apply, BATCHES * BATCH);
            note(What::Encode, encode, BATCHES * BATCH);
            let [refused, renewed] = sum(|| [refuse(world), renew(world)]);
            note(What::Refused, refused, BATCHES * BATCH);
            note(What::Renew, renewed, BATCHES * BATCH);
            let [peer] = sum(|| [peer.turn()]);
            note(What::Peer, peer, BATCHES * BATCH);
        }
    }
    for _ in 0..repetitions.min(11) {
        for (size, world, _) in &mut worlds {
            let (total, count) = sweep(world, *size);
            figures.entry((What::Sweep, *size)).or_default().push(total as f64 / count as f64);
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

fn release(world: &mut World) -> u64 {
    release_batch(world)
}

fn release_batch(world: &mut World) -> u64 {
    let requests = world.releases();
    perform_all(world, &requests)
}

fn acquire(world: &mut World) -> u64 {
    let requests = world.acquires(BATCH);
    let time = perform_all(world, &requests);
    world.note_granted(BATCH);
    time
}

fn refuse(world: &mut World) -> u64 {
    let requests = world.refused_acquires();
    perform_all(world, &requests)
}

fn renew(world: &mut World) -> u64 {
    let requests = world.renewals();
    perform_all(world, &requests)
}

/// Each decision is dropped within the measured time: somebody has to.
fn perform_all(world: &mut World, requests: &[Request]) -> u64 {
    timed(|| requests.iter().for_each(|request| drop(black_box(perform(&mut world.state, request)))))
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

/// Lets leases run out, and measures how long it takes to announce some thousands of them.
fn sweep(world: &mut World, size: usize) -> (u64, usize) {
    let (mut total, mut swept) = (0, 0);
    while swept < BATCHES * BATCH {
        world.let_some_run_out();
        let request = world.sweep();
        loop {
            let before = world.state.live_leases();
            let time = perform_all(world, std::slice::from_ref(&request));
            let ended = before - world.state.live_leases();
            if ended < BATCH {
                break;
            }
            if swept < BATCHES * BATCH {
                total += time;
                swept += ended;
            }
        }
        world.note_swept();
        world.fill(size);
    }
    (total, swept)
}
