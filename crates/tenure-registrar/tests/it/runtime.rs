//! The writer's thread on real ledgers: who is answered when, and what is there after a restart.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tenure_core::kernel::{
    Acquire, Command, CommandOutcome, ContentionPolicy, Fence, HashSeed, Holder, KernelState, Labels,
    LeaseCredential, LeaseMode, LeaseRequest, Limits, Nonce, Principal, Rejection, Resource, Tick,
    TickDuration,
};
use tenure_ledger::signing::{LedgerSigningKey, Passport, TrustedKeys};
use tenure_ledger::{
    AppendError, BatchBytes, Head, Ledger, LedgerMaintenance, LedgerReader, MemoryLedger, Seq,
};
use tenure_registrar::runtime::{
    BootClock, Clock, Feed, FeedItem, RegistrarService, Response, ServiceOptions, Subscription, Writer,
    WriterConfig, WriterFailure, replay,
};
use tenure_registrar::{AppendFailure, BatchSettings, Reply};

use crate::ledger_store::ledger_store;
use crate::scenario::LEDGER;

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_micros()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn id(&self) -> Arc<str> {
        "hand".into()
    }

    fn microseconds(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn wall_nanoseconds(&self) -> u64 {
        1_790_000_000_000_000_000 + self.microseconds() * 1_000
    }
}

/// A ledger whose next write waits until it is let go, or fails.
pub struct SlowLedger {
    ledger: MemoryLedger,
    gate: mpsc::Receiver<Result<(), AppendError>>,
    /// How many writes have begun.
    pub started_writes: Arc<AtomicUsize>,
}

impl Ledger for SlowLedger {
    fn head(&self) -> Head {
        self.ledger.head()
    }

    fn append_batch(&mut self, batch: &BatchBytes) -> Result<Head, AppendError> {
        self.started_writes.fetch_add(1, Ordering::SeqCst);
        self.gate.recv().unwrap_or(Ok(()))?;
        self.ledger.append_batch(batch)
    }

    fn reader(&self) -> Arc<dyn LedgerReader> {
        self.ledger.reader()
    }

    fn maintenance(&self) -> Arc<dyn LedgerMaintenance> {
        self.ledger.maintenance()
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}

pub fn acquire(resource: &str, holder: &str, seconds: u64) -> Command {
    Command::Acquire(Acquire {
        principal: Principal::parse("owner").unwrap(),
        holder: Holder::parse(holder).unwrap(),
        requests: vec![LeaseRequest {
            resource: Resource::parse(resource).unwrap(),
            alternatives: Default::default(),
            mode: LeaseMode::Exclusive,
            ttl: TickDuration::from_secs(seconds),
            nonce: Nonce::default(),
            labels: Labels::default(),
        }],
        contention_policy: ContentionPolicy::Deny,
        key: None,
    })
}

fn renew(lease: u64) -> Command {
    Command::Renew { lease: Fence(lease), credential: LeaseCredential::Token, ttl: None }
}

pub fn granted_fence(response: Response) -> Fence {
    match response.reply {
        Reply::Answered { answer: CommandOutcome::Granted { leases }, .. } => leases[0],
        other => panic!("not granted: {other:?}"),
    }
}

pub fn start(ledger: impl Ledger + 'static, clock: Arc<dyn Clock>) -> Writer {
    start_with(ledger, clock, BatchSettings::default())
}

fn start_with(ledger: impl Ledger + 'static, clock: Arc<dyn Clock>, settings: BatchSettings) -> Writer {
    let hash_seed = HashSeed::default();
    let replay = replay(&*ledger.reader(), Limits::default(), hash_seed).expect("it adds up");
    let feed = Feed::new(ledger.reader());
    let key = Arc::new(LedgerSigningKey::from_secret(&[7; 32]));
    Writer::start(Box::new(ledger), WriterConfig { replay, key, clock, settings, hash_seed }, feed)
        .expect("it starts")
}

pub fn slow_ledger() -> (mpsc::Sender<Result<(), AppendError>>, SlowLedger) {
    let (sender, gate) = mpsc::channel();
    sender.send(Ok(())).expect("the first write says with which key it signs");
    sender.send(Ok(())).expect("the second one that the writer started");
    (sender, SlowLedger { ledger: MemoryLedger::new(LEDGER), gate, started_writes: Arc::default() })
}

#[test]
fn requests_are_not_answered_before_the_write_returns() {
    let (gate, ledger) = slow_ledger();
    let writer = start(ledger, Arc::new(ManualClock::default()));
    let (sender, replies) = mpsc::channel();
    let other = sender.clone();
    writer.handle().submit(acquire("db", "ann", 10), move |reply| sender.send(reply).unwrap());
    // The refusal rests on the grant, so it waits for the same write.
    writer.handle().submit(acquire("db", "bob", 10), move |reply| other.send(reply).unwrap());
    replies.recv_timeout(Duration::from_millis(200)).expect_err("the write is not back");
    gate.send(Ok(())).unwrap();
    gate.send(Ok(())).unwrap();
    let [first, second] = [replies.recv().unwrap(), replies.recv().unwrap()];
    assert_eq!(granted_fence(first), Fence(1));
    assert!(
        matches!(
            second.reply,
            Reply::Answered { answer: CommandOutcome::Rejected(Rejection::Held { .. }), .. }
        ),
        "{second:?}"
    );
}

#[test]
fn a_stalled_disk_does_not_expire_a_lease_renewed_in_time() {
    let (gate, ledger) = slow_ledger();
    let clock = Arc::new(ManualClock::default());
    let writer = start(ledger, clock.clone());
    gate.send(Ok(())).unwrap();
    assert_eq!(granted_fence(writer.handle().submit_and_wait(acquire("db", "ann", 5))), Fence(1));
    // Another request keeps the disk busy for six seconds; the heartbeat arrives in the fourth.
    let (sender, replies) = mpsc::channel();
    let other = sender.clone();
    writer.handle().submit(acquire("other", "bob", 60), move |reply| sender.send(reply).unwrap());
    clock.0.store(4_000_000, Ordering::SeqCst);
    writer.handle().submit(renew(1), move |reply| other.send(reply).unwrap());
    clock.0.store(6_000_000, Ordering::SeqCst);
    (0..4).for_each(|_| gate.send(Ok(())).unwrap());
    let replies = [replies.recv().unwrap(), replies.recv().unwrap()];
    let renewed = replies.iter().any(|response| {
        matches!(response.reply, Reply::Answered { answer: CommandOutcome::Renewed { .. }, .. })
    });
    assert!(renewed, "{replies:?}");
}

#[test]
fn a_failed_write_ends_the_writer_and_answers_pending_requests() {
    let (gate, ledger) = slow_ledger();
    let writer = start(ledger, Arc::new(ManualClock::default()));
    let handle = writer.handle();
    let failure =
        AppendError::OutcomeUnknown { at: Seq(2), source: std::io::Error::other("the disk is gone") };
    gate.send(Err(failure)).unwrap();
    assert_eq!(handle.submit_and_wait(acquire("db", "ann", 10)).reply, Reply::OutcomeUnknown);
    let (_, end) = writer.stop();
    let end = end.expect("the writer ended by itself");
    assert!(matches!(end, WriterFailure::Append { failure: AppendFailure::OutcomeUnknown, .. }), "{end:?}");
    assert_eq!(handle.submit_and_wait(acquire("db", "ann", 10)).reply, Reply::Unavailable);
}

#[test]
fn requests_beyond_the_inbox_limit_are_answered_busy_immediately() {
    let (gate, ledger) = slow_ledger();
    let settings = BatchSettings { max_waiting: 3, ..BatchSettings::default() };
    let clock = Arc::new(ManualClock::default());
    let writer = start_with(ledger, clock, settings);
    let (sender, replies) = mpsc::channel();
    // One is being written, three wait.
    writer.handle().submit(acquire("first", "ann", 10), |_| {});
    std::iter::repeat_n((), 40).enumerate().for_each(|(number, ())| {
        let sender = sender.clone();
        let command = acquire(&format!("thing-{number}"), "ann", 10);
        writer.handle().submit(command, move |reply| sender.send(reply).unwrap());
    });
    let busy = replies.try_iter().filter(|response| response.reply == Reply::Busy).count();
    assert!(busy >= 30, "only {busy} of 40 were told at once");
    drop(gate);
    writer.stop();
}

#[test]
fn renewals_are_accepted_while_new_acquires_are_answered_busy() {
    let (gate, ledger) = slow_ledger();
    gate.send(Ok(())).expect("for the lease");
    let settings = BatchSettings { max_waiting: 8, ..BatchSettings::default() };
    let writer = start_with(ledger, Arc::new(ManualClock::default()), settings);
    let handle = writer.handle();
    assert_eq!(granted_fence(handle.submit_and_wait(acquire("mine", "ann", 10))), Fence(1));
    // The next write does not come back. So many in a row are turned away only when nothing is taken out any more.
    let (sender, turned_away) = mpsc::channel();
    let mut in_a_row = 0;
    for number in 0.. {
        let sender = sender.clone();
        let newcomer = acquire(&format!("thing-{number}"), "bob", 10);
        handle.submit(newcomer, move |response| drop(sender.send(response.reply)));
        in_a_row = if turned_away.try_recv() == Ok(Reply::Busy) { in_a_row + 1 } else { 0 };
        if in_a_row == 10_000 {
            break;
        }
    }
    let (sender, renewed) = mpsc::channel();
    for _ in 0..2 {
        let sender = sender.clone();
        handle.submit(renew(1), move |response| drop(sender.send(response.reply)));
    }
    drop((gate, sender));
    let replies: Vec<_> = renewed.iter().collect();
    let is_renewed = |reply: &Reply| {
        let expected = CommandOutcome::Renewed { lease: Fence(1), expires_at: Tick(10_000_000) };
        matches!(reply, Reply::Answered { answer, .. } if *answer == expected)
    };
    assert!(replies.len() == 2 && replies.iter().all(is_renewed), "{replies:?}");
    writer.stop();
}

#[test]
fn a_restart_keeps_every_lease_with_its_exact_expiry() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::default());
    let mut ends = Vec::new();
    for round in 1..=3_u64 {
        let service = open(folder.path(), clock.clone());
        let resource = format!("thing-{round}");
        assert_eq!(
            granted_fence(service.handle().submit_and_wait(acquire(&resource, "ann", 3_600))),
            Fence(round)
        );
        for (fence, expires_at) in &ends {
            let response = service.handle().submit_and_wait(Command::Renew {
                lease: Fence(*fence),
                credential: LeaseCredential::Token,
                ttl: Some(TickDuration::from_secs(1)),
            });
            // A renewal that would not extend says when the lease ends, and changes nothing.
            let expected = CommandOutcome::Renewed { lease: Fence(*fence), expires_at: *expires_at };
            let found = matches!(response.reply, Reply::Answered { answer, .. } if answer == expected);
            assert!(found, "round {round}");
        }
        // Whoever was answered finds it in the view.
        ends.push((round, service.view().read(|state| state.lease(Fence(round)).unwrap().terms.expires_at)));
        service.stop().unwrap();
        clock.0.fetch_add(90_000_000, Ordering::SeqCst);
    }
}

fn open(data: &Path, clock: Arc<dyn Clock>) -> RegistrarService {
    let ledger = ledger_store(data, 1 << 16, 0);
    RegistrarService::open(data, &ledger, ServiceOptions::default(), clock).expect("it opens")
}

/// The types of the next events, with their numbers.
fn next_event_types(subscription: &mut Subscription) -> Vec<(u64, String)> {
    match subscription.next(Duration::from_secs(30)) {
        FeedItem::Batch(batch) => {
            let types = batch.records.iter().map(|record| record.event_type.clone());
            (batch.first.0..).zip(types).collect()
        }
        other => panic!("no batch: {other:?}"),
    }
}

#[test]
fn an_expiry_is_published_without_a_request() {
    let writer = start(MemoryLedger::new(LEDGER), Arc::new(BootClock::new().unwrap()));
    granted_fence(writer.handle().submit_and_wait(acquire("db", "ann", 1)));
    let mut subscription = writer.feed().subscribe(writer.feed().head().seq);
    loop {
        if next_event_types(&mut subscription).iter().any(|(_, kind)| kind == "lease.expired") {
            break;
        }
    }
    writer.stop();
}

#[test]
fn a_subscription_reads_from_any_event_and_ends_with_the_writer() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::default());
    let service = open(folder.path(), clock.clone());
    granted_fence(service.handle().submit_and_wait(acquire("first", "ann", 60)));
    service.stop().unwrap();

    let service = open(folder.path(), clock);
    granted_fence(service.handle().submit_and_wait(acquire("second", "ann", 60)));
    let feed = service.feed();
    // The first three are in the ledger only: this service did not write them.
    let mut all = feed.subscribe(Seq(0));
    let received: Vec<_> = (0..5).flat_map(|_| next_event_types(&mut all)).collect();
    let types = ["key.added", "clock.resumed", "lease.issued", "clock.resumed", "lease.issued"];
    let expected: Vec<_> = (1..).zip(types.map(String::from)).collect();
    assert_eq!(received, expected);
    let mut late = feed.subscribe(Seq(4));
    assert_eq!(next_event_types(&mut late), [(5, "lease.issued".into())]);
    assert!(matches!(late.next(Duration::from_millis(1)), FeedItem::Nothing));
    service.stop().unwrap();
    assert!(matches!(late.next(Duration::from_secs(30)), FeedItem::Ended));
}

#[test]
fn the_view_shows_only_durable_state() {
    let (gate, ledger) = slow_ledger();
    let writer = start(ledger, Arc::new(ManualClock::default()));
    let view = writer.handle().view().clone();
    let (sender, receiver) = mpsc::channel();
    writer.handle().submit(acquire("db", "ann", 10), move |response| sender.send(response).unwrap());
    receiver.recv_timeout(Duration::from_millis(200)).expect_err("the write is not back");
    assert_eq!(view.read(KernelState::lease_count), 0, "a reader waits for no write, and sees none");
    gate.send(Ok(())).unwrap();
    receiver.recv().unwrap();
    assert_eq!(view.read(KernelState::lease_count), 1);
}

/// A ledger that cannot cope.
pub struct PanickingLedger(pub MemoryLedger);

impl Ledger for PanickingLedger {
    fn head(&self) -> Head {
        self.0.head()
    }

    fn append_batch(&mut self, batch: &BatchBytes) -> Result<Head, AppendError> {
        assert!(batch.first() < Seq(3), "this ledger cannot cope with grants");
        self.0.append_batch(batch)
    }

    fn reader(&self) -> Arc<dyn LedgerReader> {
        self.0.reader()
    }

    fn maintenance(&self) -> Arc<dyn LedgerMaintenance> {
        self.0.maintenance()
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_panic_in_the_writer_answers_every_request() {
    let writer = start(PanickingLedger(MemoryLedger::new(LEDGER)), Arc::new(ManualClock::default()));
    let handle = writer.handle();
    let (sender, receiver) = mpsc::channel();
    let first = handle.clone();
    std::thread::spawn(move || {
        let replies = ["a", "b"].map(|resource| first.submit_and_wait(acquire(resource, "ann", 10)).reply);
        sender.send(replies).unwrap();
    });
    let replies = receiver.recv_timeout(Duration::from_secs(30)).expect("both are told something");
    assert_eq!(replies, [Reply::OutcomeUnknown, Reply::Unavailable]);
    let mut feed = writer.feed().subscribe(Seq(2));
    assert!(matches!(feed.next(Duration::from_secs(30)), FeedItem::Ended), "watchers are told too");
}

// A write that was refused whole changes nothing: the writer goes on by itself, from what the ledger holds.
#[test]
fn the_writer_restarts_from_the_ledger_after_an_unavailable_append() {
    let (gate, ledger) = slow_ledger();
    let writer = start(ledger, Arc::new(ManualClock::default()));
    gate.send(Err(AppendError::Unavailable(std::io::Error::other("not now")))).unwrap();
    assert_eq!(writer.handle().submit_and_wait(acquire("db", "ann", 10)).reply, Reply::Unavailable);
    // It starts anew, which is a write of its own.
    (0..2).for_each(|_| gate.send(Ok(())).unwrap());
    let mut retries = std::iter::repeat_with(|| writer.handle().submit_and_wait(acquire("db", "bob", 10)));
    let response = retries.find(|response| response.reply != Reply::Unavailable);
    assert_eq!(
        granted_fence(response.unwrap()),
        Fence(1),
        "the number of the grant that never was is given out"
    );
    drop(gate);
    assert!(writer.stop().1.is_none());
}

// S2-7: the registrar signs lease operations, and whoever knows its key can tell.
#[test]
fn grant_renewal_and_repeated_request_yield_valid_passports() {
    let clock = Arc::new(ManualClock::default());
    let writer = start(MemoryLedger::new(LEDGER), clock.clone());
    let handle = writer.handle();
    let trusted: TrustedKeys = [LedgerSigningKey::from_secret(&[7; 32]).public_key()].into_iter().collect();
    let terms = |response: &Response| {
        let text = handle.passport(response, Fence(1)).expect("a passport").to_text();
        Passport::parse(&text).unwrap().verify(&trusted).expect("it is genuine").terms
    };
    let response = handle.submit_and_wait(acquire("db", "ann", 10));
    let first = terms(&response);
    assert_eq!((first.resource.as_str(), first.fence, first.expires_at), ("db", Fence(1), Tick(10_000_000)));
    clock.0.store(4_000_000, Ordering::SeqCst);
    let renewed = terms(&handle.submit_and_wait(renew(1)));
    assert_eq!((renewed.at, renewed.expires_at), (Tick(4_000_000), Tick(14_000_000)));
    // Nothing was written for this one: it is signed by itself, over the same terms.
    let repeat = terms(&Response::from(response.reply));
    assert_eq!((repeat.at, repeat.expires_at), (Tick(4_000_000), Tick(14_000_000)));
    writer.stop();
}
