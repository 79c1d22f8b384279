//! The first scenario: clients, a network, a server; all of them fail, and nobody ever holds twice.

mod faults;
mod studio;

use std::collections::BTreeMap;

use tenure_client::{Attempt, Call, Effect as Sent, FenceGate, Input as Told, Outcome};
use tenure_core::kernel::{Answer, Command, Fence, Refusal, Resource, Span, Tick, Ticket};
use tenure_registrar::{AppendFailure, Caller, Effect, Input, Reply, Settings};

use self::studio::{Asked, Studio, Told as ToldStudio};
use crate::agenda::Agenda;
use crate::census::{count_client, note_server};
use crate::client::Client;
use crate::clock::Clock;
use crate::host::{Host, Write};
use crate::laws::{Lawful, Violation, law};
use crate::log::Log;
use crate::rng::Rng;
use crate::run::Scenario;
use crate::storage::Storage;

#[derive(Debug)]
pub struct Fleet {
    rng: Rng,
    agenda: Agenda<Next>,
    host: Host,
    server_paused_until: u64,
    server_wake: Option<u64>,
    server_start: Option<u64>,
    clients: Vec<Client>,
    /// Those who have to do with sessions.
    studio: Studio,
    resources: u64,
    /// Whether clocks differ by so little that belief alone is safe.
    clocks_agree: bool,
    callers: BTreeMap<Caller, From>,
    tickets: BTreeMap<Ticket, (From, Tick)>,
    last_caller: u64,
    /// What each fence that a client was told of is for.
    granted: BTreeMap<Fence, Resource>,
    gates: BTreeMap<Resource, FenceGate>,
    /// The newest fence that each store was written with.
    written: BTreeMap<Resource, Fence>,
    /// No more faults and errands: everything should come to an end by itself.
    winding_down: bool,
    now: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct From {
    client: usize,
    process: u64,
    errand: u64,
    attempt: Attempt,
}

#[derive(Debug)]
enum Next {
    RequestArrives { from: From, command: Command },
    ReplyArrives { to: From, outcome: Outcome },
    ServerWakes { at: u64 },
    ServerStarts { at: u64 },
    WriteEnds { incarnation: u64, write: Write },
    ClientWakes { client: usize, at: u64 },
    ClientActs { client: usize },
    StoreIsWritten { resource: Resource, fence: Fence },
    ViewerActs,
    WorkerActs { seat: usize },
    StudioAsks { asked: Asked, command: Command },
    StudioHears { asked: Asked, told: ToldStudio },
    DiskHasRoom,
    Fault,
}

const SECOND: u64 = 1_000_000;

impl Scenario for Fleet {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let clocks_agree = !rng.percent(20);
        let most: u64 = if clocks_agree { 2_400 } else { 100_000 };
        let mut drift =
            || i64::try_from(rng.below(2 * most + 1)).unwrap_or(0) - i64::try_from(most).unwrap_or(0);
        let server_drift = drift().clamp(-2_400, 2_400);
        let drifts: Vec<i64> = (0..8).map(|_| drift()).collect();
        let count = rng.between(2, 9);
        let settings =
            Settings { inbox: 64, batch: 8, sweep: 4, stride: 2, enough: 3, ..Settings::default() };
        let clients = drifts.iter().zip(0..count).enumerate().map(|(number, (drift, _))| {
            Client::new(number, Clock::new(format!("client-{number}"), 0, 17, *drift))
        });
        let mut fleet = Self {
            host: Host::new(0, server_drift, settings, Default::default(), Storage::of_seed(seed)),
            clients: clients.collect(),
            studio: Studio::new(seed),
            agenda: Agenda::default(),
            server_paused_until: 0,
            server_wake: None,
            server_start: None,
            resources: rng.between(1, 5),
            clocks_agree,
            callers: BTreeMap::new(),
            tickets: BTreeMap::new(),
            last_caller: 0,
            granted: BTreeMap::new(),
            gates: BTreeMap::new(),
            written: BTreeMap::new(),
            winding_down: false,
            now: 0,
            rng,
        };
        fleet.start_server_at(0);
        fleet.agenda.plan(2 * SECOND, Next::Fault);
        for client in 0..fleet.clients.len() {
            let at = fleet.rng.below(SECOND);
            fleet.agenda.plan(at, Next::ClientActs { client });
        }
        fleet.open_studio();
        fleet
    }

    fn step(&mut self, log: &mut Log) -> Lawful {
        let Some((at, next)) = self.agenda.next() else { return Ok(()) };
        self.now = at;
        if let Some(later) = self.postponed(&next) {
            self.agenda.plan(later, next);
            return Ok(());
        }
        log.line(format_args!("{at} {next:?}"));
        self.happen(next, log)?;
        self.studio.check(self.now)?;
        self.check_beliefs()
    }

    fn wind_down(&mut self, log: &mut Log) -> Lawful {
        self.winding_down = true;
        self.agenda.plan(self.now, Next::DiskHasRoom);
        let end = self.now + 120 * SECOND;
        while self.now < end {
            self.step(log)?;
        }
        let quiet = self.host.laws().is_quiet();
        law(quiet, || {
            format!("still held or waited for: {:?}", self.host.laws().live().collect::<Vec<_>>())
        })?;
        let left = self.host.laws().sessions().live().next();
        law(left.is_none(), || format!("a session never ends: {left:?}"))?;
        self.host.check_agreement()
    }
}

impl Fleet {
    /// A process that is paused does nothing until it goes on.
    fn postponed(&self, next: &Next) -> Option<u64> {
        let until = match next {
            Next::RequestArrives { .. }
            | Next::StudioAsks { .. }
            | Next::ServerWakes { .. }
            | Next::WriteEnds { .. } => self.server_paused_until,
            Next::WorkerActs { .. } | Next::StudioHears { .. } => self.studio.paused_until(next),
            Next::ReplyArrives { to: From { client, .. }, .. }
            | Next::ClientWakes { client, .. }
            | Next::ClientActs { client } => self.clients[*client].paused_until,
            _ => 0,
        };
        (until > self.now).then_some(until)
    }

    fn happen(&mut self, next: Next, log: &mut Log) -> Lawful {
        match next {
            Next::ServerStarts { at } if self.server_start != Some(at) => Ok(()),
            Next::ServerStarts { .. } => {
                self.server_start = None;
                let effects = self.host.start(self.now, log)?;
                if self.host.registrar().is_none() {
                    self.start_server_at(self.now + SECOND);
                }
                self.server_does(effects, log)
            }
            Next::ServerWakes { at } if self.server_wake == Some(at) => {
                self.server_wake = None;
                self.server_steps(Input::Woken, log)
            }
            Next::WriteEnds { incarnation, write } if incarnation == self.host.incarnation => {
                let effects = self.host.written(write, self.now)?;
                self.server_does(effects, log)
            }
            Next::ServerWakes { .. } | Next::WriteEnds { .. } => Ok(()),
            Next::RequestArrives { from, command } => {
                self.last_caller += 1;
                let caller = Caller(self.last_caller);
                if self.host.registrar().is_none() {
                    self.reply(from, Outcome::Failed);
                    return Ok(());
                }
                self.callers.insert(caller, from);
                self.server_steps(Input::Asked { caller, command }, log)
            }
            Next::ReplyArrives { to, outcome } => {
                let client = &self.clients[to.client];
                if (client.process, client.errands) == (to.process, to.errand) {
                    let told = Told::Replied { attempt: to.attempt, outcome };
                    self.client_steps(to.client, told, log);
                }
                Ok(())
            }
            Next::ClientWakes { client, at } => {
                if self.clients[client].planned_wake == Some(at) {
                    self.clients[client].planned_wake = None;
                    self.client_steps(client, Told::Woken, log);
                }
                Ok(())
            }
            Next::ClientActs { client } => {
                self.client_acts(client, log);
                Ok(())
            }
            Next::StoreIsWritten { resource, fence } => self.store_is_written(resource, fence, log),
            Next::ViewerActs => {
                self.viewer_acts(log);
                Ok(())
            }
            Next::WorkerActs { seat } => {
                self.worker_acts(seat, log);
                Ok(())
            }
            Next::StudioAsks { asked, command } => self.studio_asks(asked, command, log),
            Next::StudioHears { asked, told } => {
                self.studio_hears(asked, told, log);
                Ok(())
            }
            Next::DiskHasRoom => {
                self.host.free_disk();
                self.server_steps(Input::Woken, log)
            }
            Next::Fault => self.fault(log),
        }
    }

    /// Whatever start was planned before is off: a machine that goes down again comes up once.
    fn start_server_at(&mut self, at: u64) {
        self.server_start = Some(at);
        self.agenda.plan(at, Next::ServerStarts { at });
    }

    fn server_steps(&mut self, input: Input, log: &mut Log) -> Lawful {
        let effects = self.host.step(input, self.now)?;
        self.server_does(effects, log)
    }

    fn server_does(&mut self, effects: Vec<Effect>, log: &mut Log) -> Lawful {
        for effect in effects {
            note_server(&effect, log);
            match effect {
                Effect::Append(_) => {
                    let write = self.how_the_write_ends();
                    let slow = !self.winding_down && self.rng.percent(1);
                    let longest = if slow { 6 * SECOND } else { 3_000 };
                    let at = self.now + self.rng.delay(100, longest);
                    let incarnation = self.host.incarnation;
                    self.agenda.plan(at, Next::WriteEnds { incarnation, write });
                }
                Effect::Publish(events) => log.line(format_args!("{} durable {events:?}", self.now)),
                Effect::Answer { caller, reply } => self.answer(caller, reply)?,
                Effect::Served { ticket, leases } => {
                    if let Some((from, stamp)) = self.tickets.remove(&ticket) {
                        let outcome = self.valid(&leases, stamp)?;
                        self.reply(from, outcome);
                    }
                }
                Effect::Unserved { ticket, .. } => {
                    if let Some((from, _)) = self.tickets.remove(&ticket) {
                        self.reply(from, Outcome::Refused);
                    }
                }
                Effect::StepDown(_) => {
                    self.tickets.clear();
                    let at = self.now + self.rng.delay(1_000, SECOND);
                    self.start_server_at(at);
                }
            }
        }
        // One timer, set to the next thing to do.
        let wake = self.host.wake_time().map(|at| at.max(self.now));
        if let Some(at) = wake.filter(|_| wake != self.server_wake) {
            self.agenda.plan(at, Next::ServerWakes { at });
        }
        self.server_wake = wake;
        Ok(())
    }

    fn how_the_write_ends(&mut self) -> Write {
        if self.winding_down || self.rng.below(400) > 0 {
            return Write::Done;
        }
        let failure = *self.rng.pick(&[AppendFailure::NotWritten, AppendFailure::Unknown]);
        Write::Failed { failure, kept: failure == AppendFailure::Unknown && self.rng.percent(50) }
    }

    fn answer(&mut self, caller: Caller, reply: Reply) -> Lawful {
        if let Some(asked) = self.studio.asked.remove(&caller) {
            return self.studio_is_answered(asked, reply);
        }
        let Some(from) = self.callers.remove(&caller) else { return Ok(()) };
        let outcome = match reply {
            Reply::Answered { answer, stamp } => match answer {
                Answer::Granted { leases } => self.valid(&leases, stamp)?,
                Answer::Renewed { lease, .. } => self.valid(&[lease], stamp)?,
                Answer::Queued { ticket, .. } => {
                    self.tickets.insert(ticket, (from, stamp));
                    Outcome::Queued
                }
                Answer::Refused(Refusal::Over { .. } | Refusal::NotFound) => Outcome::Over,
                _ => Outcome::Refused,
            },
            Reply::Busy | Reply::Unavailable | Reply::OutcomeUnknown | Reply::TooLate => Outcome::Failed,
        };
        self.reply(from, outcome);
        Ok(())
    }

    /// What a holder is told: how long its lease lives on from when its request came in.
    fn valid(&mut self, leases: &[Fence], stamp: Tick) -> Result<Outcome, Violation> {
        let fence = leases[0];
        self.host.laws().acknowledged(fence)?;
        let view = self.host.registrar().and_then(|registrar| registrar.state().lease(fence));
        let valid_for = view.map_or(Span(0), |view| view.terms.expires_at.since(stamp));
        self.granted.extend(view.map(|view| (fence, view.resource.clone())));
        Ok(Outcome::Valid { fence, valid_for })
    }

    fn reply(&mut self, to: From, outcome: Outcome) {
        if let Some(at) = self.carried(to.client) {
            self.agenda.plan(at, Next::ReplyArrives { to, outcome });
        }
    }

    /// When a message from or to this client arrives, if it does.
    fn carried(&mut self, client: usize) -> Option<u64> {
        let cut_off = self.clients[client].cut_off_until > self.now;
        if cut_off || (!self.winding_down && self.rng.percent(3)) {
            return None;
        }
        let longest = if self.rng.percent(3) { 10 * SECOND } else { 20_000 };
        Some(self.now + self.rng.delay(50, longest))
    }

    fn client_steps(&mut self, client: usize, told: Told, log: &mut Log) {
        let effects = self.clients[client].step(told, self.now, &mut self.rng);
        self.client_does(client, &effects, log);
    }

    fn client_does(&mut self, client: usize, effects: &[Sent], log: &mut Log) {
        for effect in effects {
            count_client(effect, log);
            match effect {
                Sent::Send { attempt, call } => self.send(client, *attempt, *call),
                Sent::Held(_) | Sent::Lost | Sent::Refused => {}
            }
        }
        let now = self.now;
        let machine = &mut self.clients[client];
        let wake = machine.wake_time().map(|at| at.max(now));
        if let Some(at) = wake.filter(|_| wake != machine.planned_wake) {
            self.agenda.plan(at, Next::ClientWakes { client, at });
        }
        machine.planned_wake = wake;
    }

    fn send(&mut self, client: usize, attempt: Attempt, call: Call) {
        let Client { process, errands, .. } = self.clients[client];
        let from = From { client, process, errand: errands, attempt };
        let Some(command) = self.clients[client].command(call, self.ticket_of(client)) else {
            // Who looks for its place in the queue, and finds none, need not leave it.
            return self.reply(from, Outcome::Over);
        };
        // A message may arrive twice; nothing may happen twice.
        for _ in 0..if self.rng.percent(2) { 2 } else { 1 } {
            if let Some(at) = self.carried(client) {
                self.agenda.plan(at, Next::RequestArrives { from, command: command.clone() });
            }
        }
    }

    /// Where in the queue a client is, as the server would tell it.
    fn ticket_of(&self, client: usize) -> Option<Ticket> {
        let machine = &self.clients[client];
        // It stands in the queue of each; one is enough to find it.
        let (holder, resource) = (machine.holder(), machine.errand.as_ref()?.resources.first()?);
        let mut queue = self.host.registrar()?.state().queue_of(resource);
        queue.find(|waiting| *waiting.holder == holder).map(|waiting| waiting.ticket)
    }

    fn client_acts(&mut self, client: usize, log: &mut Log) {
        let resting = self.clients[client].errand.as_ref().is_none_or(|errand| errand.keeper.is_done());
        let done = self.clients[client].errand.as_ref().is_some_and(|errand| errand.done_at <= self.now);
        if resting && !self.winding_down {
            let effects = self.clients[client].set_out(self.now, self.resources, &mut self.rng);
            self.client_does(client, &effects, log);
        } else if done || self.winding_down {
            self.client_steps(client, Told::Stop, log);
        } else if let Some((fence, _)) = self.clients[client].believes(self.now) {
            // The write is on its way for a while, and may arrive when the lease is long over.
            let resource = self.granted[&fence].clone();
            let at = self.now + self.rng.delay(100, 15 * SECOND);
            self.agenda.plan(at, Next::StoreIsWritten { resource, fence });
        }
        let at = self.now + self.rng.delay(100_000, 2 * SECOND);
        self.agenda.plan(at, Next::ClientActs { client });
    }

    /// The store refuses every writer that is late, and never the newest one.
    fn store_is_written(&mut self, resource: Resource, fence: Fence, log: &mut Log) -> Lawful {
        let admitted = self.gates.entry(resource.clone()).or_default().admit(fence).is_ok();
        log.count(if admitted { "store written" } else { "stale write refused" });
        let newest = self.written.entry(resource.clone()).or_default();
        law(admitted == (fence >= *newest), || {
            format!("{resource}: {fence:?} after {newest:?}: {admitted}")
        })?;
        *newest = fence.max(*newest);
        Ok(())
    }

    fn check_beliefs(&self) -> Lawful {
        if !self.clocks_agree {
            return Ok(());
        }
        let believers: Vec<_> = self.clients.iter().filter_map(|client| client.believes(self.now)).collect();
        for (index, (fence, errand)) in believers.iter().enumerate() {
            for (other, rival) in &believers[index + 1..] {
                let (resource, another) = (&self.granted[fence], &self.granted[other]);
                let apart = resource != another || errand.mode.goes_with(rival.mode);
                law(apart, || format!("{fence:?} and {other:?} both believe to hold {resource}"))?;
            }
        }
        Ok(())
    }
}
