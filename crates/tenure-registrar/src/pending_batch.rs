//! A batch in the making: requests are decided one after the other, each on what those before it left.

use tenure_core::kernel::{
    AgentOutcome, ClockAnchor, ClockReading, Command, CommandOutcome, EncodeContext, Event, Fence,
    FileOutcome, IntentOutcome, KernelState, Labels, LeaseRequest, Rejection, Tick, decide,
};
use tenure_core::rules::is_expired;
use tenure_ledger::EncodedRecords;
use tenure_ledger::signing::{Leaf, LedgerId};

use crate::registrar::{BatchWrite, RequestId};

/// What one durable write will hold, and whom to answer after it.
#[derive(Debug)]
pub(crate) struct PendingBatch {
    ledger: LedgerId,
    pub(crate) events: Vec<Event>,
    /// The same as they will be stored.
    records: EncodedRecords,
    /// About how large they are on the disk.
    pub(crate) bytes: usize,
    scratch: Vec<u8>,
    /// What is signed of each event that grants or renews, in their order.
    leaves: Vec<Leaf>,
    pub(crate) answers: Vec<DecidedRequest>,
    /// More waiters have their turn than were let in.
    pub(crate) has_unserved: bool,
    typical: TypicalSize,
}

/// How large batches are at present. One that grows while it is filled is copied again and again.
#[derive(Debug, Clone, Copy, Default)]
struct TypicalSize {
    events: usize,
    answers: usize,
    bytes: usize,
}

#[derive(Debug)]
pub(crate) struct DecidedRequest {
    pub(crate) request: RequestId,
    pub(crate) answer: CommandOutcome,
    pub(crate) stamp: Tick,
    /// When the first of the leases that it grants or renews is over. Noted here, because what is decided next may
    /// change them before this is told, and may never be written.
    pub(crate) earliest_expires_at: Option<Tick>,
}

impl PendingBatch {
    pub(crate) fn new(ledger: LedgerId) -> PendingBatch {
        PendingBatch::with_capacity(ledger, TypicalSize::default())
    }

    /// An empty one, with as much room as this one and those before it took: the next is nearly always about as large.
    pub(crate) fn successor(&self) -> PendingBatch {
        // Less with each, so that one large batch is forgotten after some small ones.
        let decayed_max = |now: usize, before: usize| now.max(before - before / 4);
        let usual = TypicalSize {
            events: decayed_max(self.events.len(), self.typical.events),
            answers: decayed_max(self.answers.len(), self.typical.answers),
            bytes: decayed_max(self.records.byte_size(), self.typical.bytes),
        };
        PendingBatch::with_capacity(self.ledger, usual)
    }

    fn with_capacity(ledger: LedgerId, typical: TypicalSize) -> PendingBatch {
        PendingBatch {
            ledger,
            events: Vec::with_capacity(typical.events),
            records: EncodedRecords::with_capacity(typical.bytes),
            bytes: 0,
            scratch: Vec::new(),
            // The last leaf is that of all events.
            leaves: Vec::with_capacity(typical.events + 1),
            answers: Vec::with_capacity(typical.answers),
            has_unserved: false,
            typical,
        }
    }

    /// Whether it is as it was made.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.answers.is_empty() && !self.has_unserved
    }

    /// Decides a request and records what comes of it, in memory only.
    pub(crate) fn decide_request(
        &mut self,
        state: &mut KernelState,
        caller: RequestId,
        command: &Command,
        stamp: Tick,
    ) {
        let first = self.events.len();
        let answer = self.decide_and_record(state, command, stamp);
        let good_until = earliest_expires_at(state, self.events[first..].last(), &answer);
        self.answers.push(DecidedRequest { request: caller, answer, stamp, earliest_expires_at: good_until });
    }

    /// Answers a request for which nothing can be written: as decided if that needs no write.
    pub(crate) fn decide_without_space(
        &mut self,
        state: &KernelState,
        caller: RequestId,
        command: &Command,
        stamp: Tick,
    ) {
        let decision = decide(state, command, stamp);
        let refused = CommandOutcome::Rejected(Rejection::NoSpace);
        let answer = if decision.events.is_empty() { decision.outcome } else { refused };
        let good_until = earliest_expires_at(state, None, &answer);
        self.answers.push(DecidedRequest { request: caller, answer, stamp, earliest_expires_at: good_until });
    }

    /// Lets in whose turn came when nobody could be let in.
    pub(crate) fn serve_waiters(&mut self, state: &mut KernelState, now: Tick, max_waiters: usize) {
        if let CommandOutcome::Swept { more: true } =
            self.decide_and_record(state, &Command::ServeWaiters { max_waiters }, now)
        {
            self.has_unserved = true;
        }
    }

    /// Announces what is over at `now`. Nothing that arrived before `now` may still wait to be decided.
    pub(crate) fn expire_leases(&mut self, state: &mut KernelState, now: Tick, max_ended: usize) {
        if state.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.decide_and_record(state, &Command::Expire { max_ended }, now);
        }
    }

    /// Notes how far time has come, if nothing else did for long enough.
    pub(crate) fn record_clock_mark(&mut self, state: &mut KernelState, now: Tick, reading: ClockReading) {
        if state.clock_mark_interval().is_some_and(|interval| now.since(state.now()) >= interval) {
            self.record(state, Event::Marked { at: now, reading });
        }
    }

    pub(crate) fn record(&mut self, state: &mut KernelState, event: Event) {
        state.apply(&event).expect("what was decided on this state can be applied to it");
        self.bytes += size_of_event(&event);
        // Now and not when it is written: then the disk would wait for it.
        let signature = leaf_reference(self.leaves.len());
        let anchor = state.clock().map_or(ClockAnchor::default(), |clock| clock.anchor);
        self.records.push(&event, EncodeContext { tag: state.ledger_tag(), anchor, signature: &signature });
        self.leaves.extend(Leaf::of_event(self.ledger, state, &event, &mut self.scratch));
        self.events.push(event);
    }

    pub(crate) fn take_write(&mut self) -> BatchWrite {
        let records = std::mem::replace(&mut self.records, EncodedRecords::with_capacity(0));
        BatchWrite { records, leaves: std::mem::take(&mut self.leaves) }
    }

    fn decide_and_record(&mut self, state: &mut KernelState, command: &Command, now: Tick) -> CommandOutcome {
        let decision = decide(state, command, now);
        self.has_unserved |= decision.has_more_waiters;
        for event in decision.events {
            self.record(state, event);
        }
        decision.outcome
    }
}

/// About how many bytes an event takes on the disk: what callers can make long is counted, the rest is a guess.
fn size_of_event(event: &Event) -> usize {
    let labels =
        |labels: &Labels| labels.iter().map(|(name, value)| name.len() + value.len() + 8).sum::<usize>();
    256 + match event {
        Event::Issued(issued) => {
            let scope = issued.authority.as_ref().map_or(0, |authority| 64 + authority.scope.byte_size());
            2 * (issued.resource.as_str().len() + issued.holder.as_str().len())
                + labels(&issued.terms.labels)
                + scope
        }
        Event::Queued(queued) => {
            let names = |request: &LeaseRequest| {
                request.resources().map(|name| name.as_str().len() + 8).sum::<usize>()
            };
            let lease_request = |request: &LeaseRequest| 64 + names(request) + labels(&request.labels);
            queued.holder.as_str().len() + queued.requests.iter().map(lease_request).sum::<usize>()
        }
        Event::Revoked { detail, .. } => detail.len(),
        Event::Intent(event) => event.byte_size(),
        Event::Agent(event) => event.byte_size(),
        Event::Work(event) => event.byte_size(),
        Event::File(event) => event.byte_size(),
        _ => 0,
    }
}

impl DecidedRequest {
    /// Whether what was granted is over before anybody could hear of it.
    pub(crate) fn has_expired_grant(&self, now: Tick) -> bool {
        self.earliest_expires_at.is_some_and(|until| is_expired(now.0, until.0))
    }
}

/// When the first of the leases is over that an answer grants or renews. `last` is the last event that it led to.
fn earliest_expires_at(state: &KernelState, last: Option<&Event>, answer: &CommandOutcome) -> Option<Tick> {
    let end = |lease: &Fence| match last {
        // Nearly always: nothing needs to be looked for.
        Some(Event::Issued(issued)) if issued.fence == *lease => issued.terms.expires_at,
        // One that is over already, though it was just granted again under its key, is past.
        _ => state.lease(*lease).map_or(Tick(0), |view| view.terms.expires_at),
    };
    match answer {
        CommandOutcome::Granted { leases } => leases.iter().map(end).min(),
        CommandOutcome::Agent(answer) => match &**answer {
            AgentOutcome::Granted { leases } => leases.iter().map(end).min(),
            _ => None,
        },
        CommandOutcome::File(answer) => match &**answer {
            FileOutcome::Granted { leases, .. } => leases.iter().map(end).min(),
            _ => None,
        },
        CommandOutcome::Intent(answer) => match &**answer {
            IntentOutcome::Taken { until, .. } => Some(*until),
            _ => None,
        },
        CommandOutcome::Renewed { lease, .. } | CommandOutcome::Reissued { lease, .. } => Some(end(lease)),
        _ => None,
    }
}

/// Version of the reference, so that another form can follow.
const LEAF_REFERENCE_VERSION: u8 = 1;

/// What stands in an event's `registrar_signature`: the number of its leaf in the batch that holds it.
pub fn leaf_reference(leaf: usize) -> [u8; 5] {
    let leaf = u32::try_from(leaf).expect("a batch has few events");
    let [a, b, c, d] = leaf.to_be_bytes();
    [LEAF_REFERENCE_VERSION, a, b, c, d]
}

/// How much the registrar takes on at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchSettings {
    /// The most requests that wait to be decided. One more is told at once that the registrar is busy.
    pub max_waiting: usize,
    /// The most requests in one durable write. With this many events, no further request is taken in either:
    /// one that asks for many leases must not make a write that nobody can sign or send.
    pub max_batch: usize,
    /// The most bytes, about, in one durable write. With this many, no further request is taken in: names and labels
    /// may be long, and the ledger limits what it takes at once.
    pub max_batch_bytes: usize,
    /// The most ends that are announced in one durable write, so that a million of them delay nobody for long.
    pub max_sweep: usize,
    /// So many requests are decided at a time while a write is under way. Whoever waits for that write is answered, and the
    /// next one begun, after so many more decisions at most.
    pub stride: usize,
    /// With so many decided, the next write does not wait until all that came in are: the disk would stand still.
    pub write_threshold: usize,
}

/// What an end takes on the disk, at most.
const MAX_END_BYTES: u64 = 256;

impl BatchSettings {
    /// The same for a ledger whose batches have so many bytes at most.
    #[must_use]
    pub fn with_max_batch_bytes(self, bytes: u64) -> BatchSettings {
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        BatchSettings {
            max_batch_bytes: self.max_batch_bytes.min(count(bytes)),
            max_sweep: self.max_sweep.min(count(bytes / MAX_END_BYTES).max(1)),
            ..self
        }
    }
}

impl Default for BatchSettings {
    fn default() -> Self {
        Self {
            max_waiting: 8_192,
            max_batch: 1_024,
            max_batch_bytes: 1 << 20,
            max_sweep: 1_024,
            stride: 12,
            write_threshold: 40,
        }
    }
}
