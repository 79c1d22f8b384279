//! What the writer's thread does: takes what has gathered, lets the registrar step, signs, writes, hands over.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::kernel::{Answer, ClockReading, HashKey, Refusal, State};
use tenure_ledger::signing::{LedgerId, SealedBatch};
use tenure_ledger::{AppendError, Ledger, Room};

use super::callers::{Callers, Waiters};
use super::clock::{Clock, boot_microseconds};
use super::feed::{Durable, Feed};
use super::inbox::{Found, Inbox};
use super::pen::{Pen, Scribe, WriteError, Written};
use super::publisher::{Outcome, Publisher, Told};
use super::replay::replay;
use super::view::{Trouble, describe};
use super::writer::{StartError, WriterFailure};
use crate::registrar::{AppendFailure, Effect, Input, Registrar, Reply, StartFailure, Write};
use crate::settings::Settings;

/// How long a writer rests whose ledger could not be written.
const REST_MICROSECONDS: u64 = 1_000_000;

/// While it rests for longer, it looks this often whether there is room again.
const LOOK: Duration = Duration::from_millis(100);

/// Starts a registrar on what the ledger adds up to.
pub(super) fn start_registrar(
    ledger: LedgerId,
    state: State,
    clock: &dyn Clock,
    settings: Settings,
) -> Result<(Registrar, Vec<Effect>, crate::Stamper), StartFailure> {
    let reading = ClockReading { clock: clock.id(), microseconds: clock.microseconds() };
    let stamper = crate::Stamper::resume(&state, &reading);
    // What waits is bounded where it comes in; what was taken out has been accepted.
    let inner = Settings { inbox: usize::MAX, ..settings };
    let (registrar, effects) = Registrar::start(ledger, state, reading, clock.wall(), inner)?;
    Ok((registrar, effects, stamper))
}

pub(super) struct Run<L> {
    /// Nothing while the scribe has it.
    pub(super) pen: Option<Pen<L>>,
    pub(super) scribe: Scribe<L>,
    pub(super) registrar: Registrar,
    pub(super) inbox: Arc<Inbox>,
    pub(super) found: Found,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) settings: Settings,
    pub(super) hash_key: HashKey,
    pub(super) publisher: Publisher,
    pub(super) callers: Callers,
    /// What was written last and is not published yet.
    pub(super) written: Option<(Durable, SealedBatch)>,
    pub(super) error: Option<AppendError>,
    pub(super) trouble: Arc<Trouble>,
}

impl<L: Ledger + Send + 'static> Run<L> {
    /// Runs until it is told to stop, or cannot go on.
    pub(super) fn run(mut self, first: Vec<Effect>) -> (L, Option<WriterFailure>) {
        let mut carried = self.carry_out(first);
        loop {
            match carried {
                Carried::On(Some(write)) => carried = self.write(write),
                Carried::On(None) => {
                    self.registrar.set_room(self.pen().ledger.room());
                    let patience = self.patience();
                    self.inbox.take(&*self.clock, patience, &mut self.found);
                    if self.found.is_closed && self.found.waiting.is_empty() {
                        return (self.into_ledger(), None);
                    }
                    carried = self.begin_batch();
                }
                // Nothing was written: what was decided is dropped, and what is in the ledger counts.
                Carried::Ended(AppendFailure::NotWritten) => {
                    self.trouble.set(
                        self.error.take().map(|error| describe("the ledger could not be written", &error)),
                    );
                    if self.is_stopped_while_it_rests() {
                        return (self.into_ledger(), None);
                    }
                    match self.begin_again() {
                        Ok(begun) => carried = self.carry_out(begun),
                        Err(error) => return (self.into_ledger(), Some(error.into())),
                    }
                }
                Carried::Ended(failure) => {
                    let source = self.error.take();
                    return (self.into_ledger(), Some(WriterFailure::Append { failure, source }));
                }
            }
        }
    }

    /// Writes. With many to answer the next batch is decided meanwhile; with few, handing over would take longer than
    /// that wins.
    fn write(&mut self, write: Write) -> Carried {
        let mut pen = self.pen.take().expect(PEN);
        let (pen, written) = if write.records.len() <= FEW {
            let written = pen.write(write);
            (pen, written)
        } else {
            let Self { scribe, registrar, inbox, found, clock, callers, .. } = self;
            let mut ahead = Ahead { registrar, inbox, found, clock: &**clock, callers };
            scribe.write(pen, write, || ahead.decide())
        };
        self.pen = Some(pen);
        self.settle(written)
    }

    /// Steps with everything that came in meanwhile before it steps with the outcome: so that whoever came in time is
    /// stamped in time.
    fn settle(&mut self, written: Written) -> Carried {
        let outcome = match written {
            Ok(written) => {
                self.written = Some(written);
                self.trouble.clear();
                Ok(())
            }
            Err(WriteError { failure, source }) => {
                self.error = source;
                Err(failure)
            }
        };
        self.registrar.set_room(self.pen().ledger.room());
        self.inbox.take(&*self.clock, Some(Duration::ZERO), &mut self.found);
        let microseconds = self.found.microseconds;
        let mut effects = self.feed();
        effects.extend(self.registrar.settle(outcome, microseconds));
        // Whoever is answered need not wait until the next batch is decided.
        match self.carry_out(effects) {
            Carried::On(_) => Carried::On(self.next_write(microseconds)),
            ended => ended,
        }
    }

    fn begin_batch(&mut self) -> Carried {
        let microseconds = self.found.microseconds;
        let mut effects = self.feed();
        effects.extend(self.registrar.step(Input::Woken, microseconds));
        self.inbox.set_backlog(self.registrar.waiting());
        self.carry_out(effects)
    }

    fn next_write(&mut self, microseconds: u64) -> Option<Write> {
        let effects = self.registrar.step(Input::Woken, microseconds);
        self.inbox.set_backlog(self.registrar.waiting());
        match self.carry_out(effects) {
            Carried::On(write) => write,
            Carried::Ended(_) => unreachable!("only a write that failed ends a registrar"),
        }
    }

    fn feed(&mut self) -> Vec<Effect> {
        feed(&mut self.registrar, &mut self.callers, &mut self.found)
    }

    fn carry_out(&mut self, effects: Vec<Effect>) -> Carried {
        let mut carried = Carried::On(None);
        let mut outcome = Outcome { answers: Vec::with_capacity(effects.len()), ..Outcome::default() };
        for effect in effects {
            match effect {
                Effect::Append(write) => carried = Carried::On(Some(write)),
                Effect::Publish(events) => {
                    outcome.events = events;
                    outcome.written = self.written.take();
                }
                Effect::Answer { caller, reply } => {
                    outcome.answers.extend(self.callers.take(caller).map(|respond| (respond, reply)));
                }
                Effect::Served { ticket, leases } => outcome.told.push((ticket, Told::Served(leases))),
                Effect::Unserved { ticket, end } => outcome.told.push((ticket, Told::Unserved(end))),
                Effect::StepDown(failure) => carried = Carried::Ended(failure),
            }
        }
        if outcome.written.is_some() || !outcome.answers.is_empty() {
            self.publisher.publish(outcome);
        }
        carried
    }

    /// Before it begins again: a ledger that could not be written a moment ago is not asked without end. Whoever
    /// asks meanwhile is told at once. Says whether this writer was told to stop.
    fn is_stopped_while_it_rests(&mut self) -> bool {
        // Who was taken out has been told.
        self.inbox.set_backlog(0);
        let until = boot_microseconds().saturating_add(REST_MICROSECONDS);
        loop {
            let left = Duration::from_micros(until.saturating_sub(boot_microseconds()));
            self.inbox.take(&*self.clock, Some(left.max(LOOK)), &mut self.found);
            let has_room = self.pen().ledger.room() > Room::Nothing;
            let reply = if has_room {
                Reply::Unavailable
            } else {
                Reply::Answered {
                    answer: Answer::Refused(Refusal::NoSpace),
                    stamp: self.registrar.state().now(),
                }
            };
            self.found.waiting.drain(..).for_each(|waiting| (waiting.respond)(reply.clone().into()));
            let has_rested = boot_microseconds() >= until;
            if self.found.is_closed || has_room && has_rested {
                return self.found.is_closed;
            }
        }
    }

    /// Drops what was decided and goes on from what the ledger holds.
    fn begin_again(&mut self) -> Result<Vec<Effect>, StartError> {
        self.written = None;
        let limits = self.registrar.state().limits().clone();
        let Pen { ledger, id, .. } = self.pen();
        let (replay, id) = (replay(ledger, *id, limits, self.hash_key)?, *id);
        let (registrar, effects, _) = start_registrar(id, replay.into_state(), &*self.clock, self.settings)?;
        self.registrar = registrar;
        Ok(effects)
    }

    fn pen(&self) -> &Pen<L> {
        self.pen.as_ref().expect(PEN)
    }

    fn into_ledger(self) -> L {
        self.pen.expect(PEN).ledger
    }

    /// How long to wait for a request before there is something to do without one.
    fn patience(&self) -> Option<Duration> {
        let at = self.registrar.wake_at()?;
        Some(Duration::from_micros(at.saturating_sub(self.clock.microseconds())))
    }
}

/// What can go on while the scribe writes.
struct Ahead<'a> {
    registrar: &'a mut Registrar,
    inbox: &'a Inbox,
    found: &'a mut Found,
    clock: &'a dyn Clock,
    callers: &'a mut Callers,
}

impl Ahead<'_> {
    /// Decides some of what has come in, and says whether there is more. Nobody is answered: all of it rests on what is
    /// being written.
    fn decide(&mut self) -> bool {
        self.inbox.take(self.clock, Some(Duration::ZERO), self.found);
        let microseconds = self.found.microseconds;
        let mut effects = feed(self.registrar, self.callers, self.found);
        effects.extend(self.registrar.step(Input::Woken, microseconds));
        self.inbox.set_backlog(self.registrar.waiting());
        assert!(effects.is_empty(), "what is decided ahead waits for what is written before");
        self.registrar.can_decide()
    }
}

fn feed(registrar: &mut Registrar, callers: &mut Callers, found: &mut Found) -> Vec<Effect> {
    let refused = found.waiting.drain(..).filter_map(|waiting| {
        let caller = callers.add(waiting.respond);
        registrar.enqueue(caller, waiting.command, waiting.microseconds)
    });
    refused.collect()
}

/// With so few events in a write, the writer does it by itself.
const FEW: usize = 16;

const PEN: &str = "the pen comes back before the writer goes on";

/// Tells everybody, when it is dropped, that nobody answers any more.
pub(super) struct TurnAway(pub(super) Arc<Inbox>, pub(super) Arc<Feed>, pub(super) Arc<Waiters>);

impl Drop for TurnAway {
    fn drop(&mut self) {
        self.0.turn_away();
        self.1.end();
        self.2.cut();
    }
}

enum Carried {
    On(Option<Write>),
    Ended(AppendFailure),
}
