//! Events from the ledger, without a connection.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use axum::body::Bytes;
use tempfile::TempDir;
use tenure_core::kernel::{
    Acquire, Command, ContentionPolicy, Event, HashSeed, Holder, KernelState, LeaseMode, LeaseRequest,
    Limits, Principal, TickDuration, decode,
};
use tenure_ledger::Seq;
use tenure_registrar::runtime::{AppliedEvent, MaintenanceOptions};
use tenure_testkit::server::ledger_store;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::encoded_event::{EncodedEvent, EventFormat, clock_anchor};
use super::history::{History, Turn, TurnEnd, TurnRequest};
use super::subscriber::{CHUNK_BYTES, MAX_CHUNKS};
use super::*;
use crate::engine::RegistrarHandle;

const SEGMENT_SIZE: u64 = 1 << 20;

struct TestHistory {
    _folder: TempDir,
    runtime: Runtime,
    registrar: RegistrarHandle,
    history: Arc<History>,
}

impl TestHistory {
    /// A copy of the recorded ledger `name`.
    fn recorded(name: &str) -> Self {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tenure/tests/golden").join(name);
        let folder = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(golden).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
        std::process::Command::new("chmod").args(["-R", "go-rwx"]).arg(folder.path()).status().unwrap();
        ledger_store(folder.path(), SEGMENT_SIZE).accept_move().unwrap();
        Self::open(folder)
    }

    fn open(folder: TempDir) -> Self {
        let (runtime, data) = (Runtime::new().unwrap(), folder.path().to_owned());
        let open = runtime.spawn_blocking(move || {
            let store = ledger_store(&data, SEGMENT_SIZE);
            RegistrarHandle::open(&data, &store, MaintenanceOptions::default(), Limits::default())
        });
        let registrar = runtime.block_on(open).unwrap().unwrap();
        let history =
            History::new(registrar.event_feed().clone(), registrar.view().clone(), HashSeed::default());
        Self { _folder: folder, runtime, registrar, history }
    }

    fn head(&self) -> u64 {
        self.registrar.event_feed().head().seq.0
    }

    fn frames_after(&self, after: u64) -> BTreeMap<u64, Bytes> {
        let events = self.history.events_between(after, self.head(), 7, || false).unwrap();
        self.history.forget(self.head());
        events.iter().map(|event| (event.seq, event.sse_frame().clone())).collect()
    }
}

// H6
#[test]
fn frames_of_every_event_type_are_the_same_wherever_reading_starts() {
    let ledger = TestHistory::recorded("ledger");
    // A server that is there from the beginning encodes each event when it is applied.
    let reader = ledger.registrar.event_feed().reader();
    let mut state = KernelState::new(reader.ledger().tag(), Limits::default(), HashSeed::default());
    let (mut live, mut kinds) = (BTreeMap::new(), BTreeSet::new());
    for batch in reader.read(Seq(0)) {
        let batch = batch.unwrap();
        for (seq, record) in (batch.first.0..).zip(&batch.records) {
            let Some(event) = decode(record, state.ledger_tag()).unwrap() else { continue };
            let removed = state.apply_and_take(&event).unwrap();
            let applied =
                AppliedEvent { seq: Seq(seq), event: &event, removed: removed.as_ref(), state: &state };
            let encoded = EncodedEvent::new(applied, clock_anchor(&state).unwrap(), 7);
            live.insert(seq, encoded.sse_frame().clone());
            kinds.insert(event.type_name());
        }
    }
    let mut missing: Vec<_> = Event::TYPE_NAMES.iter().filter(|name| !kinds.contains(*name)).collect();
    missing.retain(|name| !["lease.conflict", "lease.issue_denied"].contains(name));
    assert!(missing.is_empty(), "{missing:?}");
    for after in 0..ledger.head() {
        let late = ledger.frames_after(after);
        assert_eq!(late, live.range(after + 1..).map(|(seq, frame)| (*seq, frame.clone())).collect());
    }
}

#[test]
fn a_pruned_ledger_can_be_read_from_its_first_event() {
    let ledger = TestHistory::recorded("ledger-pruned");
    let pruned = ledger.registrar.event_feed().pruned_through().0;
    assert!(pruned > 0);
    let (all, head) = (ledger.frames_after(pruned), ledger.head());
    assert_eq!(*all.last_key_value().unwrap().0, head);
    // From a checkpoint on, the state is complete.
    let checkpoint = ledger.registrar.event_feed().reader().checkpoint_before(Seq(head)).unwrap().unwrap();
    let complete = checkpoint.header.head.seq.0;
    let frames = ledger.frames_after(complete);
    for after in complete..head {
        let late = ledger.frames_after(after);
        assert_eq!(late, frames.range(after + 1..).map(|(seq, frame)| (*seq, frame.clone())).collect());
    }
    // Leases that began after the first event are known before the checkpoint too.
    for (seq, frame) in &all {
        let frame = std::str::from_utf8(frame).unwrap();
        assert!(!frame.contains(r#""resource":"","#), "{seq}: {frame}");
    }
}

// H6
#[test]
fn a_subscriber_that_does_not_read_keeps_a_bounded_number_of_bytes() {
    let ledger = TestHistory::open(tempfile::tempdir().unwrap());
    for round in 0..8 {
        let request = |number| LeaseRequest {
            resource: Resource::parse(&format!("db:{round}-{number}")).unwrap(),
            alternatives: Default::default(),
            mode: LeaseMode::Exclusive,
            ttl: TickDuration::from_secs(86_400),
            nonce: Default::default(),
            labels: Default::default(),
        };
        let acquire = Acquire {
            principal: Principal::parse("admin").unwrap(),
            holder: Holder::parse("a").unwrap(),
            requests: (0..250).map(request).collect(),
            contention_policy: ContentionPolicy::Deny,
            key: None,
        };
        ledger.runtime.block_on(ledger.registrar.submit(Command::Acquire(acquire)));
    }
    let (chunks, mut sent) = mpsc::channel(MAX_CHUNKS);
    let filter = Arc::new(
        Filter::new(Caller::admin(Principal::parse("admin").unwrap()), None, Some("*"))
            .unwrap_or_else(|_| panic!("the filter is valid")),
    );
    let mut request = TurnRequest { after: 0, filter, format: EventFormat::ServerSent, epoch: 1, chunks };
    // A turn that begins with a replay waits a moment for the connection.
    let _runtime = ledger.runtime.enter();
    let outcome = ledger.history.run_turn(&request, || false);
    assert_eq!((outcome.end, sent.len()), (TurnEnd::Paused, MAX_CHUNKS));
    assert!(outcome.sent < outcome.read && outcome.read < ledger.head(), "{} {}", outcome.sent, outcome.read);
    let mut bytes = outcome.unsent.len();
    while let Ok(chunk) = sent.try_recv() {
        bytes += chunk.len();
    }
    assert!(bytes <= (MAX_CHUNKS + 1) * (CHUNK_BYTES + 1_024), "{bytes}");
    // Once it reads, it continues where it was, and reaches the end.
    (request.after, bytes) = (outcome.read, bytes);
    while request.after < ledger.head() {
        let outcome = ledger.history.run_turn(&request, || false);
        assert!(outcome.read > request.after);
        request.after = outcome.read;
        bytes += outcome.unsent.len();
        while let Ok(chunk) = sent.try_recv() {
            bytes += chunk.len();
        }
    }
    let all: usize = ledger.frames_after(0).values().map(Bytes::len).sum();
    assert_eq!(bytes, all);
}

fn poll(turn: &mut Pin<Box<impl Future<Output = Turn>>>) -> Option<Turn> {
    match turn.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(turn) => Some(turn),
        Poll::Pending => None,
    }
}

// H6
#[test]
fn principals_have_turns_in_rotation_and_never_all_of_them() {
    let ledger = TestHistory::open(tempfile::tempdir().unwrap());
    let wait = |name: &str| Box::pin(ledger.history.clone().turn(Principal::parse(name).unwrap()));
    let mut greedy: Vec<_> = (0..40).map(|_| wait("greedy")).collect();
    let mut next_greedy = || {
        let (index, turn) = (0..greedy.len()).find_map(|index| Some((index, poll(&mut greedy[index])?)))?;
        drop(greedy.remove(index));
        Some(turn)
    };
    let turn = next_greedy().unwrap();
    assert!(next_greedy().is_none(), "one principal never has all turns");
    let (mut one, mut two, mut again) = (wait("one"), wait("two"), wait("one"));
    let turn_of_one = poll(&mut one).unwrap();
    assert!(poll(&mut two).is_none() && poll(&mut again).is_none());
    drop(turn);
    // It waited before the others came.
    let turn = next_greedy().unwrap();
    assert!(poll(&mut two).is_none());
    drop(turn);
    let turn_of_two = poll(&mut two).unwrap();
    drop(turn_of_one);
    let turn_of_one = poll(&mut again).unwrap();
    assert!(next_greedy().is_none());
    drop(turn_of_two);
    let turn = next_greedy().unwrap();
    // Subscribers that stop waiting keep no turn, whether it was granted to them or not.
    let (mut three, mut four) = (wait("three"), wait("four"));
    assert!(poll(&mut three).is_none() && poll(&mut four).is_none());
    drop(turn_of_one);
    drop((three, turn));
    assert!(poll(&mut four).is_some() && next_greedy().is_some());
}
