//! A state that was saved and restored is the same state: whatever is asked from then on, it answers alike.

use proptest::prelude::*;
use tenure_core::kernel::{
    ClockReading, Command, Decision, Event, Fence, HashSeed, Holder, IssuedLease, KernelState, Labels,
    LeaseMode, LeaseTerms, LedgerTag, Limits, Nonce, Principal, Resource, Tick, TickDuration, decide,
};
use tenure_core::lease::ReleaseReason;

use crate::kernel::strategies::{CommandGenerator, KernelStep, config, limits_and_steps, steps};
use crate::scenario::ScenarioWorld;

const TAG: LedgerTag = LedgerTag(0xabcd);

pub fn save(state: &KernelState) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.save(&mut |piece| bytes.extend_from_slice(piece));
    bytes
}

/// The same state with another hash seed, and with everything in other places.
pub fn restore(state: &KernelState) -> KernelState {
    let bytes = save(state);
    let restored = KernelState::restore(&bytes, state.ledger_tag(), state.limits().clone(), HashSeed(3, 4));
    let restored = restored.expect("what was saved is restored");
    check_same(state, &restored);
    restored
}

pub fn check_same(one: &KernelState, other: &KernelState) {
    other.check_invariants().expect("a restored state holds what any state holds");
    assert_eq!(one.to_comparable(), other.to_comparable());
    assert_eq!(save(one), save(other), "one state, two forms");
    assert_eq!(
        (one.next_deadline(), one.clock_mark_interval()),
        (other.next_deadline(), other.clock_mark_interval())
    );
}

/// A state and what it became by being saved and restored.
struct RestoredPair {
    first: KernelState,
    restored: Option<KernelState>,
}

impl RestoredPair {
    fn new(limits: Limits) -> Self {
        let mut first = KernelState::new(TAG, limits, HashSeed(1, 2));
        let resumed = Event::Resumed {
            at: Tick(5),
            reading: reading(5),
            wall_anchor: 1_000_000,
            wall_clock: 1_000_007,
        };
        first.apply(&resumed).expect("a writer starts");
        Self { first, restored: None }
    }

    fn play(&mut self, generator: &mut CommandGenerator, steps: &[KernelStep]) {
        for step in steps {
            let (command, stamp) = generator.next_command(step, &self.first);
            self.decide_and_apply(&command, stamp);
        }
    }

    fn decide_and_apply(&mut self, command: &Command, now: Tick) -> Decision {
        let decision = decide(&self.first, command, now);
        if let Some(restored) = &self.restored {
            assert_eq!(decide(restored, command, now), decision, "{command:?}");
        }
        decision.events.iter().for_each(|event| self.apply(event));
        decision
    }

    fn apply(&mut self, event: &Event) {
        let applied = self.first.apply(event);
        assert_eq!(applied, Ok(()), "{event:?}");
        if let Some(restored) = &mut self.restored {
            assert_eq!(restored.apply(event), applied, "{event:?}");
            check_same(&self.first, restored);
        }
    }

    /// Time passes until something may be forgotten, though nothing is asked.
    fn advance_clock(&mut self, span: TickDuration) {
        let at = self.first.now().saturating_add(span);
        self.apply(&Event::Marked { at, reading: reading(at.0) });
    }
}

fn reading(microseconds: u64) -> ClockReading {
    ClockReading { clock: "boot/ns".into(), microseconds }
}

/// Times after which keys, ended leases and names of holders are forgotten, and just not.
fn pause() -> impl Strategy<Value = TickDuration> {
    let kept = prop::sample::select(vec![60_000_000, 600_000_000, 86_400_000_000_u64]);
    prop_oneof![1 => Just(TickDuration(0)), 2 => (kept, 0..3_u64).prop_map(|(kept, by)| TickDuration(kept - 1 + by))]
}

proptest! {
    #![proptest_config(config(1_000))]

    // S2-4
    #[test]
    fn restored_state_decides_like_the_original(
        (limits, before) in limits_and_steps(),
        after in prop::collection::vec((steps(8), pause()), 1..6),
    ) {
        let (mut twins, mut generator) = (RestoredPair::new(limits), CommandGenerator::default());
        twins.play(&mut generator, &before);
        twins.restored = Some(restore(&twins.first));
        for (steps, pause) in &after {
            twins.play(&mut generator, steps);
            twins.advance_clock(*pause);
        }
    }

    #[test]
    fn checkpoint_bytes_do_not_depend_on_the_hash_seed((limits, steps) in limits_and_steps()) {
        let (mut twins, mut generator) = (RestoredPair::new(limits.clone()), CommandGenerator::default());
        twins.restored = Some(restore(&twins.first));
        twins.play(&mut generator, &steps);
        let mut halves = RestoredPair::new(limits);
        let (mut generator, half) = (CommandGenerator::default(), steps.len() / 2);
        halves.play(&mut generator, &steps[..half]);
        // However often it was bytes in between.
        halves.first = restore(&restore(&halves.first));
        halves.play(&mut generator, &steps[half..]);
        prop_assert_eq!(save(&twins.first), save(&halves.first));
    }
}

/// Of two circles of one length, the answer names the one that is first by what is in the state: not by
/// where the holders stand in memory, which a restored state has forgotten.
#[test]
fn restored_state_reports_the_same_deadlock_cycle() {
    let mut world = ScenarioWorld::new(Limits::default());
    // Carol comes before bob into the table, and after him on the resource.
    world.play(
        "
        0  acquire x carol 10                 -> granted 1
        0  release 1                          -> released 1
        0  acquire r/shared bob 100           -> granted 2
        0  acquire r/shared carol 100         -> granted 3
        0  acquire a alice 100                -> granted 4
        0  acquire d dave 100                 -> granted 5
        0  acquire r dave 100 wait 50         -> queued t1 place 1 behind bob carol until 50
        0  acquire a/shared bob 100 wait 50   -> queued t2 place 1 behind alice until 50
        0  acquire a/shared carol 100 wait 50 -> queued t3 place 2 behind alice until 50
    ",
    );
    let step = "1  acquire d alice 100 wait 50 -> deadlock alice dave bob";
    world.play(step);
    world.state = restore(&world.state);
    world.play(step);
}

/// More leases than are remembered ended at one tick, the newest first.
#[test]
fn ended_leases_are_forgotten_in_order_after_a_restore() {
    const KEPT: u64 = 1 << 16;
    let mut twins = RestoredPair::new(Limits::default());
    for number in 1..=KEPT + 8 {
        twins.apply(&issued(number));
    }
    let released = |number| Event::Released {
        lease: Fence(number),
        at: Tick(10),
        by: Holder::parse("holder").expect("a holder"),
        reason: ReleaseReason::Voluntary,
    };
    (9..=KEPT + 8).rev().for_each(|number| twins.apply(&released(number)));
    let mut restored = restore(&twins.first);
    for number in 1..=8 {
        let oldest = Fence(KEPT + 9 - number);
        for state in [&mut twins.first, &mut restored] {
            assert!(state.ended_lease(oldest).is_some());
            state.apply(&released(number)).expect("it is released");
            assert!(state.ended_lease(oldest).is_none(), "{number}");
        }
    }
    check_same(&twins.first, &restored);
}

fn issued(number: u64) -> Event {
    Event::Issued(IssuedLease {
        fence: Fence(number),
        resource: Resource::parse(&format!("resource-{number}")).expect("a resource"),
        holder: Holder::parse("holder").expect("a holder"),
        principal: Principal::parse("principal").expect("a principal"),
        terms: LeaseTerms {
            mode: LeaseMode::Exclusive,
            issued_at: Tick(10),
            expires_at: Tick(20),
            ttl: TickDuration(10),
            renewals: 0,
            nonce: Nonce([7; 16]),
            labels: Labels::default(),
        },
        key: None,
        ticket: None,
        continues: None,
        authority: None,
    })
}

#[test]
fn restore_hold_survives_a_checkpoint() {
    let mut state = KernelState::default();
    let (at, hold_until) = (Tick(7), Tick(1_000));
    state
        .apply(&Event::Restored { at, epoch: 2, fence: Fence(1 << 40), hold_until })
        .expect("a copy was put back");
    let restored = restore(&state);
    assert_eq!(restored.to_comparable(), state.to_comparable());
    assert_eq!(restored.restore_quarantine_until(Tick(999)), Some(hold_until));
}
