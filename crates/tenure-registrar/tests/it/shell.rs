//! The writer's thread on real ledgers: who is answered when, and what is there after a restart.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tenure_core::kernel::{
    Acquire, Answer, Claim, Command, Contention, Event, Fence, Holder, Labels, Mode, Nonce, Principal,
    Refusal, Resource, Span, State, Want,
};
use tenure_ledger::embedded::Options;
use tenure_ledger::{
    AppendError, Batch, BatchBytes, EmbeddedLedger, Head, Ledger, MemoryLedger, ReadError, Seq,
};
use tenure_registrar::shell::{BootClock, Clock, Writer};
use tenure_registrar::{AppendFailure, Reply, Settings};

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
struct HandClock(AtomicU64);

impl Clock for HandClock {
    fn id(&self) -> Arc<str> {
        "hand".into()
    }

    fn microseconds(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn wall(&self) -> u64 {
        1_790_000_000_000_000_000 + self.microseconds() * 1_000
    }
}

/// A ledger whose next write waits until it is let go, or fails.
struct SlowLedger {
    inner: MemoryLedger,
    gate: mpsc::Receiver<Result<(), AppendError>>,
}

impl Ledger for SlowLedger {
    fn head(&self) -> Head {
        self.inner.head()
    }

    fn append_batch(&mut self, batch: &BatchBytes) -> Result<Head, AppendError> {
        self.gate.recv().unwrap_or(Ok(()))?;
        self.inner.append_batch(batch)
    }

    fn read(&self, after: Seq) -> Box<dyn Iterator<Item = Result<Batch, ReadError>> + '_> {
        self.inner.read(after)
    }
}

pub fn acquire(resource: &str, holder: &str, seconds: u64) -> Command {
    Command::Acquire(Acquire {
        principal: Principal::parse("owner").unwrap(),
        holder: Holder::parse(holder).unwrap(),
        wants: vec![Want {
            resource: Resource::parse(resource).unwrap(),
            mode: Mode::Exclusive,
            ttl: Span::from_secs(seconds),
            nonce: Nonce::default(),
            labels: Labels::default(),
        }],
        contention: Contention::Refuse,
        key: None,
    })
}

fn renew(lease: u64) -> Command {
    Command::Renew { lease: Fence(lease), claim: Claim::Token, ttl: None }
}

fn granted(reply: Reply) -> Fence {
    match reply {
        Reply::Answered { answer: Answer::Granted { leases }, .. } => leases[0],
        other => panic!("not granted: {other:?}"),
    }
}

fn start<L: Ledger + Send + 'static>(ledger: L, clock: Arc<dyn Clock>) -> Writer<L> {
    Writer::start(ledger, State::default(), clock, Settings::default(), Box::new(|_, _| {})).unwrap()
}

fn slow() -> (mpsc::Sender<Result<(), AppendError>>, SlowLedger) {
    let (sender, gate) = mpsc::channel();
    sender.send(Ok(())).expect("the first write says that the writer started");
    (sender, SlowLedger { inner: MemoryLedger::default(), gate })
}

#[test]
fn nobody_is_answered_before_the_write_returns() {
    let (gate, ledger) = slow();
    let writer = start(ledger, Arc::new(HandClock::default()));
    let (sender, replies) = mpsc::channel();
    let other = sender.clone();
    writer.handle().ask(acquire("db", "ann", 10), move |reply| sender.send(reply).unwrap());
    // The refusal rests on the grant, so it waits for the same write.
    writer.handle().ask(acquire("db", "bob", 10), move |reply| other.send(reply).unwrap());
    assert_eq!(replies.recv_timeout(Duration::from_millis(200)), Err(mpsc::RecvTimeoutError::Timeout));
    gate.send(Ok(())).unwrap();
    gate.send(Ok(())).unwrap();
    let mut told = [replies.recv().unwrap(), replies.recv().unwrap()];
    told.sort_by_key(|reply| !matches!(reply, Reply::Answered { answer: Answer::Granted { .. }, .. }));
    let [first, second] = told;
    assert_eq!(granted(first), Fence(1));
    assert!(
        matches!(second, Reply::Answered { answer: Answer::Refused(Refusal::Held { .. }), .. }),
        "{second:?}"
    );
}

#[test]
fn a_disk_that_stalls_ends_no_lease_whose_heartbeat_had_arrived() {
    let (gate, ledger) = slow();
    let clock = Arc::new(HandClock::default());
    let writer = start(ledger, clock.clone());
    gate.send(Ok(())).unwrap();
    assert_eq!(granted(writer.handle().ask_and_wait(acquire("db", "ann", 5))), Fence(1));
    // Another request keeps the disk busy for six seconds; the heartbeat arrives in the fourth.
    let (sender, replies) = mpsc::channel();
    let other = sender.clone();
    writer.handle().ask(acquire("other", "bob", 60), move |reply| sender.send(reply).unwrap());
    clock.0.store(4_000_000, Ordering::SeqCst);
    writer.handle().ask(renew(1), move |reply| other.send(reply).unwrap());
    clock.0.store(6_000_000, Ordering::SeqCst);
    (0..4).for_each(|_| gate.send(Ok(())).unwrap());
    let told = [replies.recv().unwrap(), replies.recv().unwrap()];
    let renewed =
        told.iter().any(|reply| matches!(reply, Reply::Answered { answer: Answer::Renewed { .. }, .. }));
    assert!(renewed, "{told:?}");
}

#[test]
fn a_write_that_fails_ends_the_writer_and_everybody_is_told() {
    let (gate, ledger) = slow();
    let writer = start(ledger, Arc::new(HandClock::default()));
    let handle = writer.handle();
    let failure =
        AppendError::OutcomeUnknown { at: Seq(2), source: std::io::Error::other("the disk is gone") };
    gate.send(Err(failure)).unwrap();
    assert_eq!(handle.ask_and_wait(acquire("db", "ann", 10)), Reply::OutcomeUnknown);
    let (_, end) = writer.stop();
    assert_eq!(end, Some(AppendFailure::Unknown));
    assert_eq!(handle.ask_and_wait(acquire("db", "ann", 10)), Reply::Unavailable);
}

#[test]
fn more_than_the_inbox_holds_is_told_busy_at_once() {
    let (gate, ledger) = slow();
    let settings = Settings { inbox: 3, ..Settings::default() };
    let clock = Arc::new(HandClock::default());
    let writer = Writer::start(ledger, State::default(), clock, settings, Box::new(|_, _| {})).unwrap();
    let (sender, replies) = mpsc::channel();
    // One is being written, three wait.
    writer.handle().ask(acquire("first", "ann", 10), |_| {});
    std::iter::repeat_n((), 40).enumerate().for_each(|(number, ())| {
        let sender = sender.clone();
        let command = acquire(&format!("thing-{number}"), "ann", 10);
        writer.handle().ask(command, move |reply| sender.send(reply).unwrap());
    });
    let busy = replies.try_iter().filter(|reply| *reply == Reply::Busy).count();
    assert!(busy >= 30, "only {busy} of 40 were told at once");
    drop(gate);
    writer.stop();
}

#[test]
fn a_restart_finds_every_lease_with_its_exact_end() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(HandClock::default());
    let mut ends = Vec::new();
    for round in 1..=3_u64 {
        let ledger = EmbeddedLedger::open(folder.path(), Options::default()).unwrap();
        let published = Arc::new(Mutex::new(Vec::new()));
        let seen = published.clone();
        let publish =
            Box::new(move |events: &[Event], _: &State| seen.lock().unwrap().extend_from_slice(events));
        let writer =
            Writer::start(ledger, State::default(), clock.clone(), Settings::default(), publish).unwrap();
        let resource = format!("thing-{round}");
        assert_eq!(granted(writer.handle().ask_and_wait(acquire(&resource, "ann", 3_600))), Fence(round));
        for (fence, expires_at) in &ends {
            let reply = writer.handle().ask_and_wait(Command::Renew {
                lease: Fence(*fence),
                claim: Claim::Token,
                ttl: Some(Span::from_secs(1)),
            });
            // A renewal that would not extend says when the lease ends, and changes nothing.
            let expected = Answer::Renewed { lease: Fence(*fence), expires_at: *expires_at };
            assert!(matches!(reply, Reply::Answered { answer, .. } if answer == expected), "round {round}");
        }
        let issued = published.lock().unwrap().iter().find_map(|event| match event {
            Event::Issued(issued) => Some(issued.expires_at),
            _ => None,
        });
        ends.push((round, issued.expect("it was published before it was answered")));
        let (ledger, end) = writer.stop();
        assert_eq!(end, None);
        ledger.close().unwrap();
        clock.0.fetch_add(90_000_000, Ordering::SeqCst);
    }
}

#[test]
fn an_end_is_announced_without_anybody_asking() {
    let (sender, announced) = mpsc::channel();
    let publish = Box::new(move |events: &[Event], _: &State| {
        let ends = events.iter().filter(|event| matches!(event, Event::Expired { .. }));
        ends.for_each(|event| sender.send(event.at()).unwrap());
    });
    let clock = Arc::new(BootClock::new().unwrap());
    let ledger = MemoryLedger::default();
    let writer = Writer::start(ledger, State::default(), clock, Settings::default(), publish).unwrap();
    granted(writer.handle().ask_and_wait(acquire("db", "ann", 1)));
    announced.recv_timeout(Duration::from_secs(30)).expect("the end is announced");
    writer.stop();
}

#[test]
fn a_writer_that_panics_leaves_nobody_waiting() {
    let publish = Box::new(|events: &[Event], _: &State| {
        let granted = events.iter().any(|event| matches!(event, Event::Issued(_)));
        assert!(!granted, "this watcher cannot cope with grants");
    });
    let clock = Arc::new(HandClock::default());
    let writer =
        Writer::start(MemoryLedger::default(), State::default(), clock, Settings::default(), publish)
            .unwrap();
    let handle = writer.handle();
    let (sender, told) = mpsc::channel();
    let first = handle.clone();
    std::thread::spawn(move || {
        let asked =
            [first.ask_and_wait(acquire("a", "ann", 10)), first.ask_and_wait(acquire("b", "ann", 10))];
        sender.send(asked).unwrap();
    });
    let asked = told.recv_timeout(Duration::from_secs(30)).expect("both are told something");
    assert_eq!(asked, [Reply::OutcomeUnknown, Reply::Unavailable]);
}
