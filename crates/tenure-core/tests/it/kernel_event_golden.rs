//! What stands in ledgers already: these bytes are a promise. A change here is a new stored version.

use tenure_core::authority::{Budget, Purpose};
use tenure_core::kernel::{
    Alternatives, ClockReading, Event, Fence, Holder, IdempotencyKey, Intent, IntentAcceptance, IntentEvent,
    IntentKey, IntentSessionEnd, IntentTarget, IssuedLease, Labels, LeaseMode, LeaseRequest, LeaseTerms,
    Nonce, Principal, QueuedAcquire, RequestDigest, Resource, RevocationCause, Tick, TickDuration, Ticket,
    WaitEnd, WorkEvent,
};
use tenure_core::lease::ReleaseReason;

use crate::kernel::codec::{TYPES, encode_record};

/// One event of each kind, in the order of [`TYPES`], with every field set.
pub fn one_event_of_each_kind() -> Vec<Event> {
    let (lease, at) = (Fence(17), Tick(5_000_000));
    let key = Some(IdempotencyKey { key: RequestDigest([0x11; 16]), body: RequestDigest([0x22; 16]) });
    let labels = Labels::parse([("why", "release 4")]).expect("labels");
    let resource = Resource::parse("deploy:prod").expect("a resource");
    let holder = Holder::parse("ci-42").expect("a holder");
    let principal = Principal::parse("token:7").expect("a principal");
    let (ttl, nonce) = (TickDuration(30_000_000), Nonce([0x33; 16]));
    let reading = ClockReading { clock: "boot-1/ns-2".into(), microseconds: 99 };
    let request =
        LeaseRequest::new(resource.clone(), LeaseMode::Exclusive, ttl, nonce).with_labels(labels.clone());
    vec![
        Event::Issued(IssuedLease {
            fence: lease,
            resource,
            holder: holder.clone(),
            principal: principal.clone(),
            terms: LeaseTerms {
                mode: LeaseMode::Shared,
                issued_at: at,
                expires_at: Tick(35_000_000),
                ttl,
                renewals: 0,
                nonce,
                labels,
            },
            key,
            ticket: Some(Ticket(3)),
            continues: Some(Fence(16)),
            authority: None,
        }),
        Event::Renewed { lease, at, expires_at: Tick(40_000_000), ttl },
        Event::Released { lease, at, by: holder.clone(), reason: ReleaseReason::Voluntary },
        Event::Expired { lease, at },
        Event::Revoked {
            lease,
            at,
            cause: RevocationCause::Reclaimed,
            by: principal.clone(),
            detail: "pid 9 is gone".into(),
        },
        Event::Queued(QueuedAcquire {
            ticket: Ticket(4),
            holder,
            principal,
            requests: vec![request],
            at,
            until: Tick(9_000_000),
            key,
        }),
        Event::Left { ticket: Ticket(4), at, end: WaitEnd::Withdrawn },
        Event::Marked { at, reading: reading.clone() },
        Event::Resumed {
            at,
            reading,
            wall_anchor: 1_700_000_005_000_000_000,
            wall_clock: 1_700_000_005_000_000_007,
        },
        Event::Restored { at, epoch: 2, fence: Fence(1_099_511_627_793), hold_until: Tick(86_405_000_000) },
    ]
    .into_iter()
    .chain(steps_of_a_session(at))
    .chain([spent(at)])
    .collect()
}

fn spent(at: Tick) -> Event {
    let purpose = Purpose {
        work_id: Some("T-17".into()),
        tool: Some("search".into()),
        namespace: Some("src/web".into()),
    };
    let amount = Budget { episodes: 1, tool_calls: 2, tokens: 300, duration_ms: 4_000 };
    let key = Some(IdempotencyKey { key: RequestDigest([0x11; 16]), body: RequestDigest([0x22; 16]) });
    Event::Work(Box::new(WorkEvent::Spent { lease: Fence(17), at, amount, purpose, key }))
}

/// One event of each kind that a session can have, and a recording behind them.
fn steps_of_a_session(at: Tick) -> Vec<Event> {
    let session = || Holder::parse("s-1").expect("a holder");
    let principal = || Principal::parse("token:7").expect("a principal");
    let accepted = IntentEvent::Accepted(IntentAcceptance {
        session: session(),
        intent: Intent {
            target: IntentTarget::Service("1:0:19".into()),
            profile: "hd".into(),
            params: "{}".into(),
            correlation: "c-1".into(),
        },
        key: IntentKey([0x44; 32]),
        principal: principal(),
        at,
        start_by: Tick(305_000_000),
    });
    let starting = IntentEvent::Starting {
        session: session(),
        at,
        worker: Holder::parse("worker:b:1:2:3").expect("a holder"),
        leader: Fence(16),
        slot: Some(2),
    };
    let running = IntentEvent::Running { session: session(), at, process: "pid 9".into() };
    let stop = IntentEvent::Stopping { session: session(), at, by: principal() };
    let (end, detail) = (IntentSessionEnd::LeaseLost, "gone".into());
    let ended = IntentEvent::Ended { session: session(), at, end, detail };
    [accepted, starting, running, stop, ended]
        .into_iter()
        .map(|event| Event::Intent(Box::new(event)))
        .collect()
}

const GOLDEN: [&str; 16] = [
    concat!(
        "0ace010a0b30303030616263642d313712176465706c6f793a70726f641f30303030616263642d31371a0563692d3432",
        "2080e4bf81f69fe7cb172880bccee2e5a0e7cb1732067369676e656440c096b10248c09dd81050c0843da00611a80602",
        "b2060b6465706c6f793a70726f64c20607746f6b656e3a37c8068087a70ed20610333333333333333333333333333333",
        "33da06100a03776879120972656c656173652034e206240a101111111111111111111111111111111112102222222222",
        "2222222222222222222222e80603f00610",
    ),
    concat!(
        "12340a0b30303030616263642d31371080a0e6b2f8a0e7cb171a067369676e65642880b4891330c0843da006c096b102",
        "a8068087a70e",
    ),
    "1a1e0a0b30303030616263642d31371209564f4c554e54415259a006c096b102",
    "22220a0b30303030616263642d31371080e4bf81f69fe7cb17a006c096b102a806c0843d",
    "a2062c0a0b30303030616263642d3137100218c096b1022207746f6b656e3a372a0d706964203920697320676f6e65",
    concat!(
        "0a7c0804120563692d34321a07746f6b656e3a3722380a0b6465706c6f793a70726f641001188087a70e221033333333",
        "3333333333333333333333332a100a03776879120972656c65617365203428c096b10230c0a8a5043a240a1011111111",
        "111111111111111111111111121022222222222222222222222222222222",
    ),
    "12090804100218c096b102",
    "0a1608c096b102120f0a0b626f6f742d312f6e732d321063",
    "122a08c096b102120f0a0b626f6f742d312f6e732d3210631880e4bf81f69fe7cb172087e4bf81f69fe7cb17",
    "0a1508021091808080802018c096b10220c0d68ef1c102",
    concat!(
        "5a500a03732d311206313a303a31392a02686432027b7d3a03632d314220444444444444444444444444444444444444",
        "44444444444444444444444444444a07746f6b656e3a3750c096b10258c0dcb79101",
    ),
    "621e0a03732d31120e776f726b65723a623a313a323a331810200328c096b102",
    "6a110a03732d311205706964203918c096b102",
    "72130a03732d311207746f6b656e3a3718c096b102",
    "7a120a03732d3110071a04676f6e6520c096b102",
    concat!(
        "fa015b0a0b30303030616263642d313710c096b1021a0a0801100218ac0220a01f2204542d31372a0673656172636832",
        "077372632f7765623a240a1011111111111111111111111111111111121022222222222222222222222222222222",
    ),
];

#[test]
fn event_bytes_are_stable() {
    for ((event, golden), event_type) in one_event_of_each_kind().iter().zip(GOLDEN).zip(TYPES) {
        let record = encode_record(event);
        assert_eq!(record.event_type, event_type);
        let hex: String = record.payload.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, golden, "{event_type} is stored otherwise than before");
    }
}

/// A wait for any one of several: what it adds stands behind what was there before.
#[test]
fn alternatives_are_stored_after_the_other_fields() {
    let Some(Event::Queued(mut queued)) = one_event_of_each_kind().into_iter().nth(5) else {
        panic!("the sixth is a wait")
    };
    queued.requests[0].alternatives =
        Alternatives::new(["deploy:a", "deploy:b"].map(|name| Resource::parse(name).expect("a resource")));
    let record = encode_record(&Event::Queued(queued));
    let hex: String = record.payload.iter().map(|byte| format!("{byte:02x}")).collect();
    let golden = concat!(
        "0a90010804120563692d34321a07746f6b656e3a37224c0a0b6465706c6f793a70726f641001188087a70e2210333333",
        "333333333333333333333333332a100a03776879120972656c656173652034",
        "32086465706c6f793a6132086465706c6f793a62",
        "28c096b10230c0a8a5043a240a1011111111111111111111111111111111121022222222222222222222222222222222",
    );
    assert_eq!(hex, golden);
}

/// A recording, and a session without a tuner: what is not there is not stored.
#[test]
fn recording_intent_bytes_are_stable() {
    let mut steps = steps_of_a_session(Tick(5)).into_iter();
    let (Some(Event::Intent(mut accepted)), Some(Event::Intent(mut starting))) = (steps.next(), steps.next())
    else {
        panic!("two steps")
    };
    if let IntentEvent::Accepted(accepted) = &mut *accepted {
        accepted.intent.target = IntentTarget::Recording { id: "film".into(), start_ms: 10_500 };
        accepted.intent.params = "".into();
        accepted.intent.correlation = "".into();
    }
    if let IntentEvent::Starting { slot, .. } = &mut *starting {
        *slot = None;
    }
    let hex =
        |event| encode_record(&event).payload.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(
        hex(Event::Intent(accepted)),
        concat!(
            "5a450a03732d311a0466696c6d2084522a02686442204444444444444444444444444444444444444444444444444444",
            "4444444444444a07746f6b656e3a37500558c0dcb79101",
        )
    );
    assert_eq!(hex(Event::Intent(starting)), "62190a03732d31120e776f726b65723a623a313a323a3318102805");
}

#[test]
fn record_names_its_actor() {
    for event in one_event_of_each_kind() {
        let by = if matches!(event, Event::Released { .. }) { "ci-42" } else { "registrar" };
        assert_eq!(encode_record(&event).actor_id, by);
    }
}
