//! Files as bytes: what stands in ledgers stays readable, what was saved comes back, what was damaged is refused.

use tenure_core::kernel::{
    BlockedReport, ContentionNotice, Event, FILE_LEASE_TTL, FileEvent, FileOwner, FileSessionEnd, HashSeed,
    KernelState, LeaseMode, LeaseRequest, LedgerTag, Limits, Nonce, Resource, RestoreError, RetryTicketEnd,
    Tick, Ticket, decode,
};

use crate::checkpoint::damage::{hex, restore_and_check};
use crate::checkpoint::round_trip::{restore, save};
use crate::kernel::codec::{TAG, encode_record};
use crate::scenario::{ScenarioWorld, holder};
use crate::scenario_files::{process, session_info};

/// One event of each kind, with every field set.
fn one_of_each() -> Vec<FileEvent> {
    let (at, session) = (Tick(5_000_000), || holder("s-1"));
    let resource = || Resource::parse("FILE:t/a").expect("a name");
    let mut owner = FileOwner::from_holder(holder("s-2"));
    (owner.agent, owner.session) = ("claude".into(), "c-9".into());
    (owner.process, owner.task) = (process("boot/7/1"), "tests".into());
    vec![
        FileEvent::Began { session: session_info("s-1", Some(holder("s-0")), Some("p"), Some("tests")), at },
        FileEvent::Seen { session: session(), at, task: Some("more".into()) },
        FileEvent::TurnEnded { session: session(), at },
        FileEvent::Contended(ContentionNotice {
            ticket: Ticket(4),
            session: session(),
            request: LeaseRequest::new(resource(), LeaseMode::Exclusive, FILE_LEASE_TTL, Nonce([0x33; 16])),
            owner: holder("s-2"),
            at,
            retry_at: Tick(185_000_000),
            cycle: vec![session(), holder("s-2")],
        }),
        FileEvent::Blocked {
            ticket: Ticket(4),
            report: BlockedReport {
                at,
                owner,
                held_since: Tick(1),
                seen_at: Tick(2),
                cycle: vec![session()],
            },
        },
        FileEvent::Closed { ticket: Ticket(4), at, end: RetryTicketEnd::Served },
        FileEvent::Ended {
            session: session(),
            at,
            end: FileSessionEnd::TransferredToParent,
            detail: "done".into(),
        },
        FileEvent::Violated {
            resource: resource(),
            at,
            owner: Some(holder("s-2")),
            session: Some(session()),
            detail: "not as it was".into(),
        },
    ]
}

/// What stands in ledgers already: these bytes are a promise.
const EVENTS: [&str; 8] = [
    concat!(
        "ca02310a03732d311203732d301a06636c61756465220e73657373696f6e206f6620732d312a01703205746573747338",
        "c096b102",
    ),
    "d202100a03732d3110c096b1021a046d6f7265",
    "da020a0a03732d3110c096b102",
    concat!(
        "e2024808041203732d311a260a0846494c453a742f611001188080adcfaa980722103333333333333333333333333333",
        "33332203732d3228c096b10230c0c09b583a03732d313a03732d32",
    ),
    concat!(
        "ea0235080410c096b1021a230a03732d321206636c617564651a03632d392208626f6f742f372f312a05746573747320",
        "0128023203732d31",
    ),
    "f2020f080410c096b1021a06534552564544",
    "fa021b0a03732d3110c096b1021a0948414e4445445f55502204646f6e65",
    "8203280a0846494c453a742f6110c096b1021a03732d322203732d312a0d6e6f7420617320697420776173",
];

#[test]
fn file_event_bytes_are_stable() {
    let mut found = Vec::new();
    for (event, event_type) in one_of_each().into_iter().zip(FileEvent::TYPE_NAMES) {
        let event = Event::File(Box::new(event));
        let record = encode_record(&event);
        assert_eq!((&*record.event_type, event.type_name()), (event_type, event_type));
        found.push(hex(&record.payload));
        assert_eq!(decode(&record, TAG), Ok(Some(event)));
    }
    assert_eq!(found, EVENTS, "something is stored otherwise than before");
}

#[test]
fn file_event_types_are_registered_and_checked() {
    assert!(FileEvent::TYPE_NAMES.iter().all(|name| Event::TYPE_NAMES.contains(name)));
    let record = encode_record(&Event::File(Box::new(one_of_each().remove(0))));
    for other in FileEvent::TYPE_NAMES.into_iter().skip(1).chain(["file.unheard_of"]) {
        let mut posing = record.clone();
        posing.event_type = other.into();
        assert!(decode(&posing, TAG).is_err(), "{other}");
    }
}

/// Sessions, tickets, reports and left files, with everything that they can have.
pub fn sample() -> ScenarioWorld {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play(
        "
           0  session s1 wants a+b at tests     -> began s1, granted 1 2
           0  session s1.x of s1 wants c        -> began s1.x, granted 3
           0  session s2 wants d                -> began s2, granted 4
           1  session s1 wants d checked s2     -> seen s1, contended t1 d of s2 due 181, waits d of s2 t1 until 181
           2  session s2 wants a checked s1     -> seen s2, contended t2 a of s1 due 182 circle s2 s1, waits a of s1 t2 until 182
           2  session s2 wants b checked s1     -> contended t3 b of s1 due 182 circle s2 s1, waits b of s1 t3 until 182
         190  session s2 wants a+b checked s1   -> seen s2, blocked t2 by s1 since 0 seen 1 circle s2 s1, blocked t3 by s1 since 0 seen 1 circle s2 s1, stops a of s1 t2 b of s1 t3 report t2
         191  person gives b to s2              -> closed t3 RESUMED, revoked 2 Transferred, granted 5
         192  session s1 turn ends              -> turn over s1, noted
         193  session s3 wants e                -> began s3, granted 6
         194  session s3 ends                   -> 6 VOLUNTARY, over s3 ENDED, lets go e
        ",
    );
    world
}

/// The same for a saved state.
const CHECKPOINT: &str = concat!(
    "0680e9c05c00060300010c73797374656d3a66696c6573040100027331000001610080e9c05c8080adcfaa98078080ad",
    "cfaa980700030303030303030303030303030303030002000473312e78000001630080e9c05c8080adcfaa98078080ad",
    "cfaa98070003030303030303030303030303030303000100027332000001640080e9c05c8080adcfaa98078080adcfaa",
    "9807000303030303030303030303030303030300010300016200c08db7018080adcfaa98078080adcfaa980700030303",
    "0303030303030303030303030300000102733300000002020162027331000080e9c05c8080adcfaa98078080adcfaa98",
    "07000303030303030303030303030303030300c08db701080601650273330000c0843d8080adcfaa98078080adcfaa98",
    "0700030303030303030303030303030303030000030000000000000000030273310006636c617564650d73657373696f",
    "6e206f662073310d70726f63657373206f6620733105746573747380e9c05c80897a81e0c65b0473312e780273310663",
    "6c617564650d73657373696f6e206f662073310d70726f63657373206f662073310080e9c05c80e9c05c000273320006",
    "636c617564650d73657373696f6e206f662073320d70726f63657373206f662073320080e9c05c8092f4010002010273",
    "310164008080adcfaa98070303030303030303030303030303030300c0e4835c80aaea550000020273320161008080ad",
    "cfaa9807030303030303030303030303030303030080e0c65b80aaea5502027332027331018092f40102733106636c61",
    "7564650d73657373696f6e206f662073310d70726f63657373206f6620733105746573747380e9c05cc0e4835c020273",
    "3202733101030273320162008080adcfaa9807030303030303030303030303030303030080e0c65b80aaea5502027332",
    "027331018092f40102733106636c617564650d73657373696f6e206f662073310d70726f63657373206f662073310574",
    "6573747380e9c05cc0e4835c02027332027331c08db7010202016202733106636c617564650d73657373696f6e206f66",
    "2073310d70726f63657373206f66207331057465737473c08db701016502733306636c617564650d73657373696f6e20",
    "6f662073330d70726f63657373206f662073330000",
);

#[test]
fn file_checkpoint_bytes_are_stable() {
    let world = sample();
    let bytes = save(&world.state);
    assert_eq!(bytes[0], 6);
    assert_eq!(hex(&bytes), CHECKPOINT);
    restore(&world.state);
}

#[test]
fn minimal_file_session_round_trips() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play("0  session s is active in p  -> began s, noted");
    restore(&world.state);
    world.play("0  session s ends  -> over s ENDED, lets go");
    restore(&world.state);
}

#[test]
fn checkpoint_with_files_leases_and_agents_round_trips() {
    let mut world = sample();
    world.play(
        "
         200  acquire x|y alice 10              -> 7 on x, granted 7
         200  acquire x bob 10 wait 50          -> queued t4 place 1 behind alice until 250
         200  agent old declares 1 FILE:q/MUTATES  -> granted 8
        ",
    );
    restore(&world.state);
}

fn read(bytes: &[u8]) -> Result<(), RestoreError> {
    KernelState::restore(bytes, LedgerTag(0), Limits::default(), HashSeed(5, 6)).map(|_| ())
}

#[test]
fn truncated_file_checkpoint_is_rejected() {
    let bytes = save(&sample().state);
    for length in 0..bytes.len() {
        assert!(read(&bytes[..length]).is_err(), "{length} bytes of {}", bytes.len());
    }
}

#[test]
fn file_checkpoint_with_one_changed_byte_is_rejected_or_valid() {
    let bytes = save(&sample().state);
    assert!(restore_and_check(&bytes));
    let (mut believed, mut refused) = (0, 0);
    for place in 1..bytes.len() {
        let mut changed = bytes.clone();
        for value in (0..=u8::MAX).filter(|value| *value != bytes[place]) {
            changed[place] = value;
            *(if restore_and_check(&changed) { &mut believed } else { &mut refused }) += 1;
        }
    }
    assert!(believed > 0 && refused > 0, "{believed} and {refused}");
}

#[test]
fn cyclic_session_parents_are_rejected() {
    let mut world = ScenarioWorld::new(Limits::default());
    world.play(
        "
           0  session s1 is active              -> began s1, noted
           0  session s2 of s1 is active        -> began s2, noted
           0  session s3 of s2 is active        -> began s3, noted
        ",
    );
    let bytes = save(&world.state);
    assert!(restore_and_check(&bytes));
    // s2 becomes a child of s3, whose parent it is: its name, then its parent's.
    let place = bytes.windows(6).position(|part| part == b"\x02s2\x02s1").expect("it is there");
    let mut changed = bytes;
    changed[place + 5] = b'3';
    assert!(read(&changed).is_err());
}
