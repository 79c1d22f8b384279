//! Bytes that are no state are refused, and never believed in part; those that are stay readable.

use proptest::prelude::*;
use tenure_core::kernel::{
    Acquire, ClockReading, Command, ContentionPolicy, Event, Fence, HashSeed, Holder, IdempotencyKey,
    KernelState, Labels, LeaseMode, LeaseRequest, LedgerTag, Limits, Nonce, Principal, RequestDigest,
    Resource, RestoreError, RevocationCause, Tick, TickDuration, decide,
};

use crate::checkpoint::round_trip::{restore, save};
use crate::kernel::strategies::{CommandGenerator, config, limits_and_steps};

/// Something of everything that a state can hold.
pub fn sample_state() -> KernelState {
    let mut state = KernelState::default();
    let reading = ClockReading { clock: "boot/ns".into(), microseconds: 300 };
    let resumed = Event::Resumed { at: Tick(100), reading, wall_anchor: 1_000, wall_clock: 0 };
    state.apply(&resumed).expect("a writer starts");
    let seconds = |seconds: u64| Tick(seconds * 1_000_000);
    let labels = || Labels::parse([("why", "release 4"), ("by", "")]).expect("labels");
    let acquire =
        |state: &mut KernelState, at: u64, caller: &str, what: &[(&str, LeaseMode)], key: u8, wait: u64| {
            let request = |(resource, mode): &(&str, LeaseMode)| LeaseRequest {
                resource: Resource::parse(resource).expect("a resource"),
                alternatives: Default::default(),
                mode: *mode,
                ttl: TickDuration::from_secs(100),
                nonce: Nonce([key; 16]),
                labels: labels(),
            };
            let (holder, owner) = caller.split_once('@').expect("a holder and its principal");
            let acquire = Acquire {
                principal: Principal::parse(owner).expect("a principal"),
                holder: Holder::parse(holder).expect("a holder"),
                requests: what.iter().map(request).collect(),
                contention_policy: ContentionPolicy::Queue { wait_timeout: TickDuration::from_secs(wait) },
                key: (key > 0).then_some(IdempotencyKey {
                    key: RequestDigest([key; 16]),
                    body: RequestDigest([key + 1; 16]),
                }),
            };
            decide_and_apply(state, &Command::Acquire(acquire), seconds(at));
        };
    let end = |state: &mut KernelState, at: u64, lease: u64, cause: RevocationCause| {
        let (by, detail) = (Principal::parse("admin").expect("a principal"), "".into());
        decide_and_apply(state, &Command::Revoke { lease: Fence(lease), cause, by, detail }, seconds(at));
    };
    acquire(&mut state, 1, "zoe@ops", &[("x", LeaseMode::Exclusive)], 3, 0);
    acquire(&mut state, 1, "yan@team", &[("y", LeaseMode::Renames)], 0, 0);
    acquire(&mut state, 2, "bob@team", &[("db", LeaseMode::Shared), ("log", LeaseMode::Provides)], 5, 0);
    acquire(&mut state, 3, "ann@ops", &[("db", LeaseMode::Consumes)], 0, 0);
    acquire(&mut state, 4, "kim@team", &[("db", LeaseMode::Mutates), ("z", LeaseMode::Exclusive)], 7, 60);
    end(&mut state, 5, 2, RevocationCause::Wiped);
    end(&mut state, 5, 1, RevocationCause::Died);
    end(&mut state, 6, 4, RevocationCause::Disconnected);
    let renew = Command::Renew {
        lease: Fence(3),
        credential: tenure_core::kernel::LeaseCredential::Token,
        ttl: None,
    };
    decide_and_apply(&mut state, &renew, seconds(7));
    state
}

fn decide_and_apply(state: &mut KernelState, command: &Command, now: Tick) {
    for event in decide(state, command, now).events {
        state.apply(&event).expect("what was decided is applied");
    }
    state.check_invariants().expect("it holds after every event");
}

fn restore_bytes(bytes: &[u8]) -> Result<KernelState, RestoreError> {
    KernelState::restore(bytes, LedgerTag(0), Limits::default(), HashSeed(5, 6))
}

/// Refused, or a state in good order: it has this one form, and goes on.
pub fn restore_and_check(bytes: &[u8]) -> bool {
    let Ok(mut state) = restore_bytes(bytes) else { return false };
    state.check_invariants().unwrap_or_else(|wrong| panic!("{wrong} in {}", hex(bytes)));
    assert!(save(&state) == bytes, "two forms of one state: {}", hex(bytes));
    let later = Tick(state.now().0.saturating_add(150_000_000));
    decide_and_apply(&mut state, &Command::Expire { max_ended: 2 }, later);
    decide_and_apply(&mut state, &Command::Expire { max_ended: 100 }, Tick(u64::MAX));
    true
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The same, and somebody waits for any one of several.
pub fn sample_state_with_alternatives() -> KernelState {
    let mut state = sample_state();
    let names = ["log", "db", "x"].map(|name| Resource::parse(name).expect("a resource"));
    let [first, alternatives @ ..] = names;
    let request = LeaseRequest::new(first, LeaseMode::Exclusive, TickDuration::from_secs(5), Nonce([9; 16]))
        .with_alternatives(alternatives);
    let plain = LeaseRequest::new(
        Resource::parse("db").expect("a resource"),
        LeaseMode::Shared,
        TickDuration::from_secs(5),
        Nonce([8; 16]),
    );
    let acquire = Acquire {
        principal: Principal::parse("team").expect("a principal"),
        holder: Holder::parse("lou").expect("a holder"),
        requests: vec![request, plain],
        contention_policy: ContentionPolicy::Queue { wait_timeout: TickDuration::from_secs(30) },
        key: None,
    };
    decide_and_apply(&mut state, &Command::Acquire(acquire), Tick(8_000_000));
    state
}

#[test]
fn damaged_checkpoint_with_alternatives_is_rejected_or_valid() {
    let state = sample_state_with_alternatives();
    assert_eq!(state.queue_tickets().count(), 2, "it waits");
    let bytes = save(&state);
    restore(&state);
    assert!(restore_and_check(&bytes));
    for place in 1..bytes.len() {
        let mut changed = bytes.clone();
        for value in [0, 1, 2, 3, 5, 0x7f, 0x80, 0xff] {
            changed[place] = value;
            restore_and_check(&changed);
        }
    }
}

// S2-4
#[test]
fn truncated_or_extended_checkpoint_is_rejected() {
    let bytes = save(&sample_state());
    for length in 0..bytes.len() {
        assert!(restore_bytes(&bytes[..length]).is_err(), "{length} bytes of {}", bytes.len());
    }
    let longer = [&bytes[..], &[0]].concat();
    let reason = "something follows its end";
    assert_eq!(restore_bytes(&longer).err(), Some(RestoreError::Damaged { at: bytes.len(), reason }));
}

#[test]
fn unknown_checkpoint_version_is_named() {
    let mut bytes = save(&sample_state());
    for found in (0..=u8::MAX).filter(|found| *found != 6) {
        bytes[0] = found;
        assert_eq!(restore_bytes(&bytes).err(), Some(RestoreError::Version { found }));
    }
}

#[test]
fn checkpoint_with_one_changed_byte_is_rejected_or_valid() {
    let bytes = save(&sample_state());
    assert!(restore_and_check(&bytes));
    let (mut believed, mut refused) = (0, 0);
    for place in 1..bytes.len() {
        let mut changed = bytes.clone();
        for value in (0..=u8::MAX).filter(|value| *value != bytes[place]) {
            changed[place] = value;
            *(if restore_and_check(&changed) { &mut believed } else { &mut refused }) += 1;
        }
    }
    // A nonce or a name may be any other; what refers to something may not.
    assert!(believed > 0 && refused > 0, "{believed} and {refused}");
}

/// Lists that follow from one another, changed by hand: each has a check of its own.
#[test]
fn inconsistent_checkpoint_is_rejected_with_a_reason() {
    let head = |last_fence: u8, last_ticket: u8| vec![6, 50, 0, last_fence, last_ticket, 0];
    let terms = |mode: u8| [vec![mode, 5, 10, 10, 0], vec![0; 16], vec![0]].concat();
    let one = [head(9, 9), b"\x01\x01p".to_vec()].concat();
    let new = |name: &[u8]| [b"\x00\x01", name, b"\x00"].concat();
    let lease = |distance: u8, holder: &[u8], resource: &[u8], mode: u8| {
        [&[distance], holder, resource, &terms(mode)].concat()
    };
    let first = |distance: u8, mode: u8| lease(distance, &new(b"h"), b"\x00\x01r", mode);
    let none_else = vec![0, 0, 0, 0];
    // No sessions, agents, authority or files.
    let no_parts = [0; 12];
    let reason = |parts: &[Vec<u8>]| match restore_bytes(&[&parts.concat()[..], &no_parts].concat()) {
        Ok(state) => state.check_invariants().map_or("broken", |()| "fine").to_owned(),
        Err(RestoreError::Damaged { reason, .. }) => reason.to_owned(),
        Err(other) => other.to_string(),
    };
    let two =
        |first: Vec<u8>, second: Vec<u8>| reason(&[one.clone(), vec![2], first, second, none_else.clone()]);
    let (h, i) = (new(b"h"), new(b"i"));
    assert_eq!(two(first(1, 1), lease(1, &[1], &[1], 1)), "fine");
    assert_eq!(two(first(1, 1), lease(1, &i, &[1], 3)), "fine");
    assert_eq!(two(first(1, 1), lease(1, &i, &[1], 0)), "two leases do not go together");
    assert_eq!(two(first(1, 2), lease(1, &i, &[1], 2)), "two leases do not go together");
    assert_eq!(two(first(1, 1), lease(0, &i, &[1], 1)), "two numbers are the same");
    assert_eq!(two(first(1, 1), lease(9, &i, &[1], 1)), "a lease was never given out");
    assert_eq!(two(first(1, 1), lease(1, &h, &[1], 1)), "a holder stands twice");
    assert_eq!(two(first(1, 1), lease(1, &[2], &[1], 1)), "there is no such holder");
    assert_eq!(two(first(1, 1), lease(1, &[0, 1, b'i', 1], &[1], 1)), "there is no such principal");
    assert_eq!(two(first(1, 1), lease(1, &i, &[1], 8)), "it is held in an unknown mode");
    assert_eq!(two(first(1, 1), lease(1, &new(b"\n"), &[1], 1)), "a name is none");
    assert_eq!(two(first(1, 1), lease(1, &i, &[2], 1)), "there is no such resource");
    assert_eq!(two(first(1, 1), lease(1, &i, b"\x00\x01r", 1)), "a resource stands twice");
    assert_eq!(two(first(1, 1), lease(1, &i, b"\x00\x01s", 0)), "fine");

    let leases = [one.clone(), vec![1], first(4, 1), vec![0, 0]].concat();
    let key = |number: u8, outcome: &[u8]| [vec![number; 32], outcome.to_vec()].concat();
    let keys = |keys: &[Vec<u8>]| {
        let count = u8::try_from(keys.len()).expect("few");
        reason(&[leases.clone(), vec![count], keys.concat(), vec![0]])
    };
    assert_eq!(keys(&[key(1, &[1, 4]), key(2, &[2, 1, 1, 7])]), "fine");
    assert_eq!(keys(&[key(2, &[1, 4]), key(1, &[1, 1, 7])]), "keys are not in their order");
    assert_eq!(keys(&[key(1, &[1, 4]), key(2, &[2, 1, 3])]), "two keys lead to one lease");
    assert_eq!(keys(&[key(1, &[1, 10])]), "a key leads to a lease that never was");
    assert_eq!(keys(&[key(1, &[0, 1])]), "a key waits for nothing");
    assert_eq!(keys(&[key(1, &[1, 1, 0xff, 0xff, 0xff, 0x7f])]), "a key is kept too long");
    let ended = |fence: u8| [&[fence, 1, b'r', 1, b'h', 0], &terms(1)[..], &[2, 0]].concat();
    let ends = |ends: &[Vec<u8>]| {
        let count = u8::try_from(ends.len()).expect("few");
        reason(&[leases.clone(), vec![0, count], ends.concat()])
    };
    assert_eq!(ends(&[ended(3), ended(2)]), "fine");
    for wrong in [[3, 3], [3, 4], [3, 10]] {
        assert_eq!(ends(&wrong.map(ended)), "an ended lease lives or never was");
    }
}

proptest! {
    #![proptest_config(config(1_000))]

    #[test]
    fn damaged_checkpoints_are_rejected_or_valid(
        (limits, steps) in limits_and_steps(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 1..4_usize), 1..40),
    ) {
        let (mut state, mut generator) = (KernelState::new(LedgerTag(0), limits, HashSeed(1, 2)), CommandGenerator::default());
        for step in &steps {
            let (command, stamp) = generator.next_command(step, &state);
            decide_and_apply(&mut state, &command, stamp);
        }
        let bytes = save(&state);
        for (place, value, count) in changes {
            let mut changed = bytes.clone();
            let start = place.index(bytes.len());
            changed.iter_mut().skip(start).take(count).for_each(|byte| *byte = value.wrapping_add(*byte));
            restore_and_check(&changed);
        }
    }
}
