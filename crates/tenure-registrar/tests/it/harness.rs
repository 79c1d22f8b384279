//! A registrar under random inputs, and what must hold whatever they are.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::kernel::{
    ClockReading, Command, CommandOutcome, Event, Fence, Holder, KernelState, Rejection, Tick, Ticket,
};
use tenure_core::ledger::EventRecord;
use tenure_registrar::{AppendFailure, BatchSettings, Effect, Input, Registrar, Reply, RequestId};

use crate::scenario::{LEDGER, WALL, decode_event, replay_records};

/// A registrar, its ledger, and what the ledger's readers know.
pub struct RegistrarHarness {
    registrar: Registrar,
    settings: BatchSettings,
    clock: u32,
    reading: u64,
    /// The reading at which this registrar started, and the tick that it stands for.
    origin: (u64, Tick),
    ledger: Vec<EventRecord>,
    writing: Option<Vec<EventRecord>>,
    ended: bool,
    callers: u64,
    open: BTreeMap<RequestId, (Command, Tick)>,
    /// Those who were told that they wait, and not yet how it ended.
    tickets: BTreeSet<Ticket>,
    /// Up to this ticket, whoever waited was asking a process that is gone.
    gone_through: Ticket,
    known: AcknowledgedState,
}

/// What the acknowledged records say.
#[derive(Default)]
struct AcknowledgedState {
    /// Every lease, with its last promised end.
    promised: BTreeMap<Fence, Tick>,
    /// Those that ran out.
    expired: BTreeSet<Fence>,
    /// Who ever held or waited.
    holders: BTreeSet<Holder>,
    last_ticket: Ticket,
}

impl RegistrarHarness {
    pub fn new(settings: BatchSettings) -> Self {
        let (registrar, effects) = start(&[], 0, 0, settings);
        let mut world = Self {
            registrar,
            settings,
            clock: 0,
            reading: 0,
            origin: (0, Tick(0)),
            ledger: Vec::new(),
            writing: None,
            ended: false,
            callers: 0,
            open: BTreeMap::new(),
            tickets: BTreeSet::new(),
            gone_through: Ticket(0),
            known: AcknowledgedState::default(),
        };
        world.apply_effects(effects, false);
        world
    }

    pub fn advance_clock(&mut self, microseconds: u64) {
        self.reading += microseconds;
    }

    pub fn last_fence(&self) -> u64 {
        self.registrar.state().last_fence().0
    }

    pub fn request(&mut self, command: Command) {
        self.callers += 1;
        let caller = RequestId(self.callers);
        self.open.insert(caller, (command.clone(), self.now()));
        self.step(Input::Request { caller, command });
    }

    pub fn wake(&mut self) {
        self.step(Input::Woken);
    }

    /// To the very instant that the registrar asked for.
    pub fn wake_when_due(&mut self) {
        if let Some(at) = self.registrar.wake_at() {
            self.reading = self.reading.max(at);
        }
        self.wake();
    }

    pub fn complete_write(&mut self) {
        if let Some(records) = self.writing.take() {
            self.known.learn(&records);
            self.ledger.extend(records);
            self.step(Input::Appended(Ok(())));
        }
    }

    pub fn fail_write(&mut self, failure: AppendFailure) {
        if self.writing.take().is_some() {
            self.step(Input::Appended(Err(failure)));
            assert!(self.open.is_empty(), "the writer ended, and {:?} were not told", self.open.keys());
        }
    }

    /// The process is gone, and another one starts, perhaps on another machine.
    pub fn crash(&mut self, write_kept: bool, reboot: bool) {
        if let Some(records) = self.writing.take().filter(|_| write_kept) {
            self.known.learn(&records);
            self.ledger.extend(records);
        }
        if reboot {
            self.clock += 1;
            self.reading /= 2;
        }
        self.open.clear();
        self.tickets.clear();
        self.gone_through = self.known.last_ticket;
        self.ended = false;
        let (registrar, effects) = start(&self.ledger, self.clock, self.reading, self.settings);
        self.origin = (self.reading, registrar.state().now());
        self.registrar = registrar;
        self.apply_effects(effects, false);
    }

    /// All writes come back: then everybody has been answered, and the ledger says what the state says.
    pub fn complete_all_writes(&mut self) {
        for _ in 0..1_000 {
            if self.writing.is_none() {
                break;
            }
            self.complete_write();
        }
        assert!(self.writing.is_none(), "it writes for ever");
        assert!(self.open.is_empty(), "never answered: {:?}", self.open);
        if self.ended {
            return;
        }
        let replayed = self.replayed();
        assert_eq!(replayed.to_comparable(), self.registrar.state().to_comparable(), "a replay differs");
        for ticket in &self.tickets {
            assert!(replayed.queue_ticket(*ticket).is_some(), "{ticket:?} waits no longer and was not told");
        }
    }

    fn replayed(&self) -> KernelState {
        replay_records(&self.ledger)
    }

    fn now(&self) -> Tick {
        Tick(self.origin.1.0 + (self.reading - self.origin.0))
    }

    fn step(&mut self, input: Input) {
        // Only a write that came back, or none that was under way, lets anybody be told of a decision.
        let may_reply = matches!(input, Input::Appended(Ok(()))) || self.registrar.is_fully_durable();
        let effects = self.registrar.step(input, self.reading);
        self.apply_effects(effects, may_reply);
    }

    fn apply_effects(&mut self, effects: Vec<Effect>, may_reply: bool) {
        for effect in effects {
            match effect {
                Effect::Append(write) => {
                    assert!(self.writing.is_none(), "two writes at once");
                    self.writing = Some(write.records.decode());
                }
                Effect::Publish(events) => {
                    assert!(may_reply && self.writing.is_none(), "{events:?} is not durable");
                    let newest = &self.ledger[self.ledger.len() - events.len()..];
                    assert_eq!(newest.iter().map(decode_event).collect::<Vec<_>>(), events);
                }
                Effect::Served { ticket, leases } => {
                    assert!(may_reply && self.writing.is_none(), "{ticket:?} is served too early");
                    self.end_wait(ticket);
                    self.check_active(&leases);
                }
                Effect::Unserved { ticket, .. } | Effect::ServedTooLate { ticket } => {
                    self.end_wait(ticket);
                }
                Effect::Answer { request: caller, reply } => self.check_reply(caller, &reply, may_reply),
                Effect::StepDown(_) => self.ended = true,
            }
        }
        if let Some(at) = self.registrar.wake_at() {
            assert!(at > self.reading, "it asks to be woken at {at} again, at {}", self.reading);
        }
    }

    fn end_wait(&mut self, ticket: Ticket) {
        assert!(
            self.tickets.remove(&ticket) || ticket <= self.gone_through,
            "nobody knows {ticket:?} yet, or any more"
        );
    }

    fn check_reply(&mut self, caller: RequestId, reply: &Reply, may_reply: bool) {
        let pending = self.open.remove(&caller);
        let (command, came_in) = pending.unwrap_or_else(|| panic!("{caller:?} is answered twice"));
        let Reply::Answered { answer, stamp } = reply else { return };
        assert!(may_reply && self.writing.is_none(), "{caller:?} hears {answer:?} before it is durable");
        assert_eq!(*stamp, came_in, "stamped on entering");
        match answer {
            CommandOutcome::Granted { leases } => self.check_active(leases),
            CommandOutcome::Renewed { lease, expires_at } => {
                self.check_active(&[*lease]);
                assert!(
                    self.known.promised[lease] >= *expires_at,
                    "{lease:?} is promised more than is durable"
                );
            }
            CommandOutcome::Queued { ticket, .. } => {
                self.tickets.insert(*ticket);
            }
            CommandOutcome::Rejected(Rejection::Held { holder, .. }) => {
                assert!(self.known.holders.contains(holder), "refused because of what is not durable");
            }
            CommandOutcome::Rejected(Rejection::Ended { lease, .. }) => {
                let in_time = came_in < self.known.promised[lease];
                let is_renewal = matches!(command, Command::Renew { .. });
                let ran_out = self.known.expired.contains(lease);
                assert!(
                    !(is_renewal && in_time && ran_out),
                    "{lease:?} ran out though its heartbeat was there"
                );
            }
            _ => {}
        }
    }

    /// Whoever is told that it holds something must hold it at that moment, by what is durable.
    fn check_active(&self, leases: &[Fence]) {
        for lease in leases {
            let until = self.known.promised.get(lease);
            assert!(until.is_some_and(|until| *until > self.now()), "{lease:?} is over, or not durable");
        }
    }
}

impl AcknowledgedState {
    fn learn(&mut self, records: &[EventRecord]) {
        for event in records.iter().map(decode_event) {
            match event {
                Event::Issued(issued) => {
                    self.holders.insert(issued.holder);
                    self.promised.insert(issued.fence, issued.terms.expires_at);
                }
                Event::Renewed { lease, expires_at, .. } => {
                    self.promised.insert(lease, expires_at);
                }
                Event::Expired { lease, .. } => {
                    self.expired.insert(lease);
                }
                Event::Queued(queued) => {
                    self.holders.insert(queued.holder);
                    self.last_ticket = queued.ticket;
                }
                _ => {}
            }
        }
    }
}

fn start(
    ledger: &[EventRecord],
    clock: u32,
    reading: u64,
    settings: BatchSettings,
) -> (Registrar, Vec<Effect>) {
    let reading = ClockReading { clock: format!("boot-{clock}").into(), microseconds: reading };
    Registrar::start(LEDGER, replay_records(ledger), reading, WALL, settings).expect("a start")
}
