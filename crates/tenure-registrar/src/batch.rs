//! A batch in the making: requests are decided one after the other, each on what those before it left.

use tenure_core::kernel::{
    AgentAnswer, Anchor, Answer, ClockReading, Command, Event, Fence, FileAnswer, IntentAnswer, Labels,
    Refusal, Stamp, State, Tick, Want, decide,
};
use tenure_core::rules::time::is_over;
use tenure_ledger::Records;
use tenure_ledger::signing::{Leaf, LedgerId};

use crate::registrar::{Caller, Write};

/// What one durable write will hold, and whom to answer after it.
#[derive(Debug)]
pub(crate) struct Batch {
    ledger: LedgerId,
    pub(crate) events: Vec<Event>,
    /// The same as they will be stored.
    records: Records,
    /// About how large they are on the disk.
    pub(crate) bytes: usize,
    room: Vec<u8>,
    /// What is signed of each event that grants or renews, in their order.
    leaves: Vec<Leaf>,
    pub(crate) answers: Vec<Decided>,
    /// More waiters have their turn than were let in.
    pub(crate) has_unserved: bool,
    usual: Usual,
}

/// How large batches are at present. One that grows while it is filled is copied again and again.
#[derive(Debug, Clone, Copy, Default)]
struct Usual {
    events: usize,
    answers: usize,
    bytes: usize,
}

#[derive(Debug)]
pub(crate) struct Decided {
    pub(crate) caller: Caller,
    pub(crate) answer: Answer,
    pub(crate) stamp: Tick,
    /// When the first of the leases that it grants or renews is over. Noted here, because what is decided next may
    /// change them before this is told, and may never be written.
    pub(crate) good_until: Option<Tick>,
}

impl Batch {
    pub(crate) fn new(ledger: LedgerId) -> Batch {
        Batch::with_room(ledger, Usual::default())
    }

    /// An empty one, with as much room as this one and those before it took: the next is nearly always about as large.
    pub(crate) fn successor(&self) -> Batch {
        // Less with each, so that one large batch is forgotten after some small ones.
        let most = |now: usize, before: usize| now.max(before - before / 4);
        let usual = Usual {
            events: most(self.events.len(), self.usual.events),
            answers: most(self.answers.len(), self.usual.answers),
            bytes: most(self.records.bytes(), self.usual.bytes),
        };
        Batch::with_room(self.ledger, usual)
    }

    fn with_room(ledger: LedgerId, usual: Usual) -> Batch {
        Batch {
            ledger,
            events: Vec::with_capacity(usual.events),
            records: Records::with_room(usual.bytes),
            bytes: 0,
            room: Vec::new(),
            // The last leaf is that of all events.
            leaves: Vec::with_capacity(usual.events + 1),
            answers: Vec::with_capacity(usual.answers),
            has_unserved: false,
            usual,
        }
    }

    /// Whether it is as it was made.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.answers.is_empty() && !self.has_unserved
    }

    /// Decides a request and records what comes of it, in memory only.
    pub(crate) fn take(&mut self, state: &mut State, caller: Caller, command: &Command, stamp: Tick) {
        let first = self.events.len();
        let answer = self.run(state, command, stamp);
        let good_until = good_until(state, self.events[first..].last(), &answer);
        self.answers.push(Decided { caller, answer, stamp, good_until });
    }

    /// Answers a request for which nothing can be written: as decided if that needs no write.
    pub(crate) fn take_without_room(
        &mut self,
        state: &State,
        caller: Caller,
        command: &Command,
        stamp: Tick,
    ) {
        let decision = decide(state, command, stamp);
        let refused = Answer::Refused(Refusal::NoSpace);
        let answer = if decision.events.is_empty() { decision.answer } else { refused };
        let good_until = good_until(state, None, &answer);
        self.answers.push(Decided { caller, answer, stamp, good_until });
    }

    /// Lets in whose turn came when nobody could be let in.
    pub(crate) fn serve(&mut self, state: &mut State, now: Tick, most: usize) {
        if let Answer::Swept { more: true } = self.run(state, &Command::Serve { most }, now) {
            self.has_unserved = true;
        }
    }

    /// Announces what is over at `now`. Nothing that arrived before `now` may still wait to be decided.
    pub(crate) fn sweep(&mut self, state: &mut State, now: Tick, most: usize) {
        if state.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.run(state, &Command::Expire { most }, now);
        }
    }

    /// Notes how far time has come, if nothing else did for long enough.
    pub(crate) fn mark(&mut self, state: &mut State, now: Tick, reading: ClockReading) {
        if state.mark_interval().is_some_and(|interval| now.since(state.now()) >= interval) {
            self.record(state, Event::Marked { at: now, reading });
        }
    }

    pub(crate) fn record(&mut self, state: &mut State, event: Event) {
        state.apply(&event).expect("what was decided on this state can be applied to it");
        self.bytes += size_of_event(&event);
        // Now and not when it is written: then the disk would wait for it.
        let signature = leaf_reference(self.leaves.len());
        let anchor = state.clock().map_or(Anchor::default(), |clock| clock.anchor);
        self.records.push(&event, Stamp { tag: state.tag(), anchor, signature: &signature });
        self.leaves.extend(Leaf::of_event(self.ledger, state, &event, &mut self.room));
        self.events.push(event);
    }

    pub(crate) fn write(&mut self) -> Write {
        let records = std::mem::replace(&mut self.records, Records::with_room(0));
        Write { records, leaves: std::mem::take(&mut self.leaves) }
    }

    fn run(&mut self, state: &mut State, command: &Command, now: Tick) -> Answer {
        let decision = decide(state, command, now);
        self.has_unserved |= decision.has_unserved;
        for event in decision.events {
            self.record(state, event);
        }
        decision.answer
    }
}

/// About how many bytes an event takes on the disk: what callers can make long is counted, the rest is a guess.
fn size_of_event(event: &Event) -> usize {
    let labels =
        |labels: &Labels| labels.iter().map(|(name, value)| name.len() + value.len() + 8).sum::<usize>();
    256 + match event {
        Event::Issued(issued) => {
            let scope = issued.authority.as_ref().map_or(0, |authority| 64 + authority.scope.bytes());
            2 * (issued.resource.as_str().len() + issued.holder.as_str().len())
                + labels(&issued.labels)
                + scope
        }
        Event::Queued(queued) => {
            let names = |want: &Want| want.resources().map(|name| name.as_str().len() + 8).sum::<usize>();
            let want = |want: &Want| 64 + names(want) + labels(&want.labels);
            queued.holder.as_str().len() + queued.wants.iter().map(want).sum::<usize>()
        }
        Event::Revoked { detail, .. } => detail.len(),
        Event::Intent(event) => event.bytes(),
        Event::Agent(event) => event.bytes(),
        Event::Work(event) => event.bytes(),
        Event::File(event) => event.bytes(),
        _ => 0,
    }
}

impl Decided {
    /// Whether what was granted is over before anybody could hear of it.
    pub(crate) fn is_too_late(&self, now: Tick) -> bool {
        self.good_until.is_some_and(|until| is_over(now.0, until.0))
    }
}

/// When the first of the leases is over that an answer grants or renews. `last` is the last event that it led to.
fn good_until(state: &State, last: Option<&Event>, answer: &Answer) -> Option<Tick> {
    let end = |lease: &Fence| match last {
        // Nearly always: nothing needs to be looked for.
        Some(Event::Issued(issued)) if issued.fence == *lease => issued.expires_at,
        // One that is over already, though it was just granted again under its key, is past.
        _ => state.lease(*lease).map_or(Tick(0), |view| view.terms.expires_at),
    };
    match answer {
        Answer::Granted { leases } => leases.iter().map(end).min(),
        Answer::Agent(answer) => match &**answer {
            AgentAnswer::Granted { leases } => leases.iter().map(end).min(),
            _ => None,
        },
        Answer::File(answer) => match &**answer {
            FileAnswer::Granted { leases, .. } => leases.iter().map(end).min(),
            _ => None,
        },
        Answer::Intent(answer) => match &**answer {
            IntentAnswer::Taken { until, .. } => Some(*until),
            _ => None,
        },
        Answer::Renewed { lease, .. } | Answer::Continued { lease, .. } => Some(end(lease)),
        _ => None,
    }
}

/// Version of the reference, so that another form can follow.
const LEAF: u8 = 1;

/// What stands in an event's `registrar_signature`: the number of its leaf in the batch that holds it.
pub fn leaf_reference(leaf: usize) -> [u8; 5] {
    let leaf = u32::try_from(leaf).expect("a batch has few events");
    let [a, b, c, d] = leaf.to_be_bytes();
    [LEAF, a, b, c, d]
}
