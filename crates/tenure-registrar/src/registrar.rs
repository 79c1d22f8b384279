//! The step function: what happened and what the clock says, to what to do.

use std::collections::VecDeque;

use tenure_core::kernel::{
    Answer, ClockReading, Command, Event, Fence, Granting, State, Tick, Ticket, WaitEnd,
};
use tenure_core::rules::time::is_over;
use tenure_ledger::signing::{Leaf, LedgerId};
use tenure_ledger::{Records, Room};
use thiserror::Error;

use crate::batch::{Batch, Decided};
use crate::settings::Settings;
use crate::stamper::Stamper;

/// Who is to be answered. The shell gives these out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Caller(pub u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A request came in. It is stamped with this step's reading, however long it then waits.
    Asked { caller: Caller, command: Command },
    /// The last [`Effect::Append`] came back.
    Appended(Result<(), AppendFailure>),
    /// The time that [`Registrar::wake_at`] named has come.
    Woken,
}

/// Why an append failed. Whichever it is, this writer is at its end: what it decided may not stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AppendFailure {
    #[error("another writer took over")]
    Overtaken,
    #[error("the ledger cannot be written")]
    NotWritten,
    #[error("nobody knows whether the ledger was written")]
    Unknown,
}

/// What to do, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Write this durably as the next batch, then step with [`Input::Appended`].
    Append(Write),
    /// These events are durable: update views, tell watchers.
    Publish(Vec<Event>),
    /// A waiter's turn has come. Whoever drew this ticket was answered with it before.
    Served {
        ticket: Ticket,
        /// What it holds now, in the order asked for.
        leases: Vec<Fence>,
    },
    /// A waiter's time is over, or it left, or what it was granted is over before it could hear of it.
    Unserved {
        ticket: Ticket,
        end: WaitEnd,
    },
    Answer {
        caller: Caller,
        reply: Reply,
    },
    /// Drop this registrar. Replay the ledger and start another one.
    StepDown(AppendFailure),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    pub records: Records,
    /// What is signed of each event that grants or renews, in their order.
    pub leaves: Vec<Leaf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The kernel's answer, durable with everything that it rests on.
    Answered {
        answer: Answer,
        /// When the request came in. A holder may count its time from when it *sent* the request, because
        /// that was before.
        stamp: Tick,
    },
    /// Too much waits already. Nothing happened.
    Busy,
    /// The write took so long that what it granted is over.
    TooLate,
    /// The writer is at its end and nothing happened. Asking again is safe.
    Unavailable,
    /// The writer is at its end and it may have happened. Ask again with the same idempotency key.
    OutcomeUnknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StartFailure {
    /// The end of time is reached; no ledger ever gets there but a forged one.
    #[error("the ledger's last tick leaves no time for another lease")]
    NoTimeLeft,
}

/// The single writer of one ledger.
#[derive(Debug)]
pub struct Registrar {
    state: State,
    room: Room,
    /// Somebody may wait whose turn has come already.
    serve_due: bool,
    clock: std::sync::Arc<str>,
    stamper: Stamper,
    settings: Settings,
    inbox: VecDeque<(Caller, Command, Tick)>,
    in_flight: Option<Batch>,
    /// What was decided meanwhile: the next to be written.
    next: Batch,
    ended: bool,
}

impl Registrar {
    /// Starts on a replayed `state`. The first effect is an append that says that, when, and on which clock
    /// this writer started; nobody is answered before it is durable.
    ///
    /// `wall_clock` is in Unix nanoseconds. Wall time only ever maps forwards: a wall clock that was set
    /// back goes on from where it was.
    pub fn start(
        ledger: LedgerId,
        state: State,
        reading: ClockReading,
        wall_clock: u64,
        settings: Settings,
    ) -> Result<(Self, Vec<Effect>), StartFailure> {
        let stamper = Stamper::resume(&state, &reading);
        let at = stamper.last();
        if at.checked_add(state.limits().longest_ttl).is_none() {
            return Err(StartFailure::NoTimeLeft);
        }
        let before = state.clock().map_or(0, |clock| clock.anchor.wall_of(at));
        let clock = reading.clock.clone();
        // Those who waited when the last writer ended may have their turn by now.
        let serve_due = state.has_waiters();
        let mut registrar = Self {
            state,
            room: Room::Plenty,
            serve_due,
            clock,
            stamper,
            settings,
            inbox: VecDeque::new(),
            in_flight: None,
            next: Batch::new(ledger),
            ended: false,
        };
        let mut batch = Batch::new(ledger);
        let resumed = Event::Resumed { at, reading, wall_anchor: wall_clock.max(before), wall_clock };
        batch.record(&mut registrar.state, resumed);
        let effects = registrar.send(batch, at);
        Ok((registrar, effects))
    }

    /// Takes one step. `microseconds` is what the clock says now.
    pub fn step(&mut self, input: Input, microseconds: u64) -> Vec<Effect> {
        let now = self.stamper.stamp(microseconds);
        match input {
            Input::Asked { caller, command } => match self.enqueue(caller, command, microseconds) {
                Some(refused) => vec![refused],
                None => self.work(now, microseconds),
            },
            Input::Woken => self.work(now, microseconds),
            Input::Appended(outcome) => {
                let mut effects = self.settle(outcome, microseconds);
                effects.extend(self.work(now, microseconds));
                effects
            }
        }
    }

    /// The first half of a step with [`Input::Asked`]: the request is stamped and waits, or is refused. The other half
    /// follows with [`Input::Woken`], once for all that came in together: else the first would be a batch of its own.
    pub fn enqueue(&mut self, caller: Caller, command: Command, microseconds: u64) -> Option<Effect> {
        let now = self.stamper.stamp(microseconds);
        if self.ended {
            return Some(answer(caller, Reply::Unavailable));
        }
        if self.waiting() >= self.settings.inbox {
            return Some(answer(caller, Reply::Busy));
        }
        self.inbox.push_back((caller, command, now));
        None
    }

    /// The first half of a step with [`Input::Appended`]: what to publish and to answer. The other half, the next
    /// batch, follows with [`Input::Woken`]. So whoever is answered need not wait until that is decided.
    pub fn settle(&mut self, outcome: Result<(), AppendFailure>, microseconds: u64) -> Vec<Effect> {
        let now = self.stamper.stamp(microseconds);
        match outcome {
            Ok(()) => self.durable(now),
            Err(failure) => self.step_down(failure),
        }
    }

    /// Says what the ledger has room for, before the next step.
    pub fn set_room(&mut self, room: Room) {
        if room == self.room {
            return;
        }
        self.room = room;
        self.state.set_granting(match room {
            Room::Plenty => Granting::Everything,
            Room::Renewals => Granting::Renewals,
            Room::Ends | Room::Nothing => Granting::Nothing,
        });
        self.serve_due |= self.state.has_waiters();
    }

    /// What the clock will say when this registrar has something to do by itself; nothing while a write is
    /// under way, because its return is a step anyway.
    pub fn wake_at(&self) -> Option<u64> {
        if self.ended || self.in_flight.is_some() || self.room == Room::Nothing {
            return None;
        }
        let mark = self.state.mark_interval().map(|interval| self.state.now().saturating_add(interval));
        let next = self.state.next_deadline().into_iter().chain(mark).chain(self.serve_at()).min()?;
        Some(self.stamper.reading_at(next))
    }

    /// The state, with what is decided and not durable yet already applied. For the shell's views use what was published.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Whether something waits that could be decided now.
    pub fn can_decide(&self) -> bool {
        !self.ended && !self.inbox.is_empty() && self.has_room_in_next()
    }

    /// How many requests wait for the next write, decided or not.
    pub fn waiting(&self) -> usize {
        self.inbox.len() + self.next.answers.len()
    }

    /// Whether everything in [`Self::state`] is durable.
    pub fn is_settled(&self) -> bool {
        self.in_flight.is_none() && self.next.events.is_empty() && !self.ended
    }

    /// When waiters are to be let in whose turn came already.
    fn serve_at(&self) -> Option<Tick> {
        let may_grant = self.room == Room::Plenty;
        let now = self.stamper.last();
        (self.serve_due && may_grant).then(|| self.state.held_back_until(now).unwrap_or(now))
    }

    /// Decides whatever waits, and writes it unless a write is under way: then it is written next. So the disk and
    /// the decisions need not wait for each other.
    fn work(&mut self, now: Tick, microseconds: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.ended {
            return effects;
        }
        if self.in_flight.is_some() {
            self.decide_what_waits(self.settings.stride.max(1));
        }
        // A batch that wrote nothing is answered at once, and no write comes back to go on with the rest.
        while self.in_flight.is_none() {
            if self.next.answers.len() < self.settings.enough {
                self.decide_what_waits(usize::MAX);
            }
            self.round_off(now, microseconds);
            if self.next.is_empty() {
                break;
            }
            let successor = self.next.successor();
            let batch = std::mem::replace(&mut self.next, successor);
            effects.extend(self.send(batch, now));
            if self.inbox.is_empty() {
                break;
            }
        }
        effects
    }

    /// Decides at most so many of those that fit into the next batch, in the order in which they came.
    fn decide_what_waits(&mut self, most: usize) {
        for _ in 0..most {
            if !self.has_room_in_next() {
                break;
            }
            let Some((caller, command, stamp)) = self.inbox.pop_front() else { break };
            if self.room == Room::Nothing {
                self.next.take_without_room(&self.state, caller, &command, stamp);
            } else {
                self.next.take(&mut self.state, caller, &command, stamp);
            }
        }
    }

    fn has_room_in_next(&self) -> bool {
        // At least one of each, whatever the settings say: none would be a writer that stands still or spins.
        let (most, most_bytes) = (self.settings.batch.max(1), self.settings.batch_bytes.max(1));
        let Batch { answers, events, bytes, .. } = &self.next;
        answers.len() < most && events.len() < most && *bytes < most_bytes
    }

    /// What the registrar adds to a batch right before it is written: whose turn has come, what is over, what time it is.
    fn round_off(&mut self, now: Tick, microseconds: u64) {
        if self.room == Room::Nothing {
            return;
        }
        // A heartbeat that arrived in time counts, so nothing is over for the sake of others before what still waits in the
        // inbox was decided.
        let until = self.inbox.front().map_or(now, |(_, _, stamp)| *stamp);
        let has_room = self.next.events.len() < self.settings.batch.max(1);
        if has_room && self.serve_at().is_some_and(|at| at <= until) {
            self.next.serve(&mut self.state, until, self.settings.sweep.max(1));
            self.serve_due = false;
        }
        self.next.sweep(&mut self.state, until, self.settings.sweep.max(1));
        if self.inbox.is_empty() {
            let reading = ClockReading { clock: self.clock.clone(), microseconds };
            self.next.mark(&mut self.state, now, reading);
        }
        self.serve_due |= self.next.has_unserved;
    }

    /// Appends the batch, or answers at once where there is nothing to append: then what the answers rest
    /// on is durable already.
    fn send(&mut self, mut batch: Batch, now: Tick) -> Vec<Effect> {
        if batch.events.is_empty() {
            return self.answers(batch, now).collect();
        }
        let write = batch.write();
        self.in_flight = Some(batch);
        vec![Effect::Append(write)]
    }

    fn durable(&mut self, now: Tick) -> Vec<Effect> {
        let Some(mut batch) = self.in_flight.take() else { return Vec::new() };
        let events = std::mem::take(&mut batch.events);
        let told = ends_of_waits(&events, now);
        let mut effects = Vec::with_capacity(1 + batch.answers.len() + told.len());
        effects.push(Effect::Publish(events));
        effects.extend(self.answers(batch, now));
        // After the answers: one of them may be where a waiter learns of its ticket.
        effects.extend(told);
        effects
    }

    fn answers(&self, batch: Batch, now: Tick) -> impl Iterator<Item = Effect> {
        let reply = move |decided: Decided| {
            let is_too_late = decided.is_too_late(now);
            let Decided { caller, answer: kernel_answer, stamp, .. } = decided;
            let answered = Reply::Answered { answer: kernel_answer, stamp };
            answer(caller, if is_too_late { Reply::TooLate } else { answered })
        };
        batch.answers.into_iter().map(reply)
    }

    fn step_down(&mut self, failure: AppendFailure) -> Vec<Effect> {
        self.ended = true;
        let lost = if failure == AppendFailure::Unknown { Reply::OutcomeUnknown } else { Reply::Unavailable };
        let in_flight = self.in_flight.take().map(|batch| batch.answers).unwrap_or_default();
        let in_flight = in_flight.into_iter().map(|decided| answer(decided.caller, lost.clone()));
        // Decided or not: nothing of it was written.
        let decided = std::mem::take(&mut self.next.answers).into_iter().map(|decided| decided.caller);
        let waiting = decided.chain(self.inbox.drain(..).map(|(caller, ..)| caller));
        let waiting = waiting.map(|caller| answer(caller, Reply::Unavailable));
        let mut effects: Vec<_> = in_flight.chain(waiting).collect();
        effects.push(Effect::StepDown(failure));
        effects
    }
}

/// What the events mean for those who wait, in their order. Whoever is told at `now` that its turn has come still
/// holds what it was granted.
fn ends_of_waits(events: &[Event], now: Tick) -> Vec<Effect> {
    let mut effects: Vec<Effect> = Vec::new();
    for event in events {
        match event {
            Event::Issued(issued) => {
                let Some(ticket) = issued.ticket else { continue };
                let is_past = is_over(now.0, issued.expires_at.0);
                match effects.last_mut() {
                    Some(Effect::Served { ticket: last, leases }) if *last == ticket && !is_past => {
                        leases.push(issued.fence);
                    }
                    // One that is over is enough: it was all or nothing.
                    Some(Effect::Served { ticket: last, .. } | Effect::Unserved { ticket: last, .. })
                        if *last == ticket =>
                    {
                        effects.pop();
                        effects.push(Effect::Unserved { ticket, end: WaitEnd::TimedOut });
                    }
                    _ if is_past => effects.push(Effect::Unserved { ticket, end: WaitEnd::TimedOut }),
                    _ => effects.push(Effect::Served { ticket, leases: vec![issued.fence] }),
                }
            }
            Event::Left { ticket, end, .. } => effects.push(Effect::Unserved { ticket: *ticket, end: *end }),
            _ => {}
        }
    }
    effects
}

fn answer(caller: Caller, reply: Reply) -> Effect {
    Effect::Answer { caller, reply }
}
