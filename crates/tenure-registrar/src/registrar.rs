//! The step function: what happened and what the clock says, to what to do.

use std::collections::VecDeque;

use tenure_core::kernel::{
    AdmissionLevel, ClockReading, Command, CommandOutcome, Event, Fence, KernelState, Tick, Ticket, WaitEnd,
};
use tenure_core::rules::is_expired;
use tenure_ledger::signing::{Leaf, LedgerId};
use tenure_ledger::{EncodedRecords, SpaceLevel};
use thiserror::Error;

use crate::pending_batch::{BatchSettings, DecidedRequest, PendingBatch};
use crate::tick_clock::TickClock;

/// Who is to be answered. The shell gives these out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A request came in. It is stamped with this step's reading, however long it then waits.
    Request { caller: RequestId, command: Command },
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
    OutcomeUnknown,
}

/// What to do, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Write this durably as the next batch, then step with [`Input::Appended`].
    Append(BatchWrite),
    /// These events are durable: update views, tell watchers.
    Publish(Vec<Event>),
    /// A waiter's turn has come. Whoever drew this ticket was answered with it before.
    Served {
        ticket: Ticket,
        /// What it holds now, in the order asked for.
        leases: Vec<Fence>,
    },
    /// A waiter timed out or left the queue.
    Unserved {
        ticket: Ticket,
        end: WaitEnd,
    },
    /// A waiter was granted leases that expired before their grant was durable.
    ServedTooLate {
        ticket: Ticket,
    },
    Answer {
        request: RequestId,
        reply: Reply,
    },
    /// Drop this registrar. Replay the ledger and start another one.
    StepDown(AppendFailure),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchWrite {
    pub records: EncodedRecords,
    /// What is signed of each event that grants or renews, in their order.
    pub leaves: Vec<Leaf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The kernel's answer, durable with everything that it rests on.
    Answered {
        answer: CommandOutcome,
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
    TimeExhausted,
}

/// The single writer of one ledger.
#[derive(Debug)]
pub struct Registrar {
    state: KernelState,
    space_level: SpaceLevel,
    /// Somebody may wait whose turn has come already.
    serve_due: bool,
    clock: std::sync::Arc<str>,
    stamper: TickClock,
    settings: BatchSettings,
    inbox: VecDeque<(RequestId, Command, Tick)>,
    in_flight: Option<PendingBatch>,
    /// What was decided meanwhile: the next to be written.
    next_batch: PendingBatch,
    has_ended: bool,
}

impl Registrar {
    /// Starts on a replayed `state`. The first effect is an append that says that, when, and on which clock
    /// this writer started; nobody is answered before it is durable.
    ///
    /// `wall_clock` is in Unix nanoseconds. Wall time only ever maps forwards: a wall clock that was set
    /// back goes on from where it was.
    pub fn start(
        ledger: LedgerId,
        state: KernelState,
        reading: ClockReading,
        wall_clock: u64,
        settings: BatchSettings,
    ) -> Result<(Self, Vec<Effect>), StartFailure> {
        let stamper = TickClock::resume(&state, &reading);
        let at = stamper.last();
        if at.checked_add(state.limits().max_ttl).is_none() {
            return Err(StartFailure::TimeExhausted);
        }
        let before = state.clock().map_or(0, |clock| clock.anchor.wall_time_of(at));
        let clock = reading.clock.clone();
        // Those who waited when the last writer ended may have their turn by now.
        let serve_due = state.has_waiters();
        let mut registrar = Self {
            state,
            space_level: SpaceLevel::Plenty,
            serve_due,
            clock,
            stamper,
            settings,
            inbox: VecDeque::new(),
            in_flight: None,
            next_batch: PendingBatch::new(ledger),
            has_ended: false,
        };
        let mut batch = PendingBatch::new(ledger);
        let resumed = Event::Resumed { at, reading, wall_anchor: wall_clock.max(before), wall_clock };
        batch.record(&mut registrar.state, resumed);
        let effects = registrar.append_or_answer(batch, at);
        Ok((registrar, effects))
    }

    /// Takes one step. `microseconds` is what the clock says now.
    pub fn step(&mut self, input: Input, microseconds: u64) -> Vec<Effect> {
        let now = self.stamper.stamp(microseconds);
        match input {
            Input::Request { caller, command } => match self.enqueue(caller, command, microseconds) {
                Some(refused) => vec![refused],
                None => self.decide_and_write(now, microseconds),
            },
            Input::Woken => self.decide_and_write(now, microseconds),
            Input::Appended(outcome) => {
                let mut effects = self.complete_append(outcome, microseconds);
                effects.extend(self.decide_and_write(now, microseconds));
                effects
            }
        }
    }

    /// The first half of a step with [`Input::Request`]: the request is stamped and waits, or is refused. The other half
    /// follows with [`Input::Woken`], once for all that came in together: else the first would be a batch of its own.
    pub fn enqueue(&mut self, caller: RequestId, command: Command, microseconds: u64) -> Option<Effect> {
        let now = self.stamper.stamp(microseconds);
        if self.has_ended {
            return Some(answer(caller, Reply::Unavailable));
        }
        if self.pending_request_count() >= self.settings.max_waiting {
            return Some(answer(caller, Reply::Busy));
        }
        self.inbox.push_back((caller, command, now));
        None
    }

    /// The first half of a step with [`Input::Appended`]: what to publish and to answer. The other half, the next
    /// batch, follows with [`Input::Woken`]. So whoever is answered need not wait until that is decided.
    pub fn complete_append(&mut self, outcome: Result<(), AppendFailure>, microseconds: u64) -> Vec<Effect> {
        let now = self.stamper.stamp(microseconds);
        match outcome {
            Ok(()) => self.publish_durable(now),
            Err(failure) => self.step_down(failure),
        }
    }

    /// Says what the ledger has room for, before the next step.
    pub fn set_space_level(&mut self, level: SpaceLevel) {
        if level == self.space_level {
            return;
        }
        self.space_level = level;
        self.state.set_admission_level(match level {
            SpaceLevel::Plenty => AdmissionLevel::Everything,
            SpaceLevel::EndsAndRenewals => AdmissionLevel::Renewals,
            SpaceLevel::EndsOnly | SpaceLevel::Exhausted => AdmissionLevel::Nothing,
        });
        self.serve_due |= self.state.has_waiters();
    }

    /// What the clock will say when this registrar has something to do by itself; nothing while a write is
    /// under way, because its return is a step anyway.
    pub fn wake_at(&self) -> Option<u64> {
        if self.has_ended || self.in_flight.is_some() || self.space_level == SpaceLevel::Exhausted {
            return None;
        }
        let mark = self.state.clock_mark_interval().map(|interval| self.state.now().saturating_add(interval));
        let next = self.state.next_deadline().into_iter().chain(mark).chain(self.serve_at()).min()?;
        Some(self.stamper.reading_at(next))
    }

    /// The state, with what is decided and not durable yet already applied. For the shell's views use what was published.
    pub fn state(&self) -> &KernelState {
        &self.state
    }

    /// Whether something waits that could be decided now.
    pub fn can_decide(&self) -> bool {
        !self.has_ended && !self.inbox.is_empty() && self.has_capacity_in_next_batch()
    }

    /// How many requests wait for the next write, decided or not.
    pub fn pending_request_count(&self) -> usize {
        self.inbox.len() + self.next_batch.answers.len()
    }

    /// Whether everything in [`Self::state`] is durable.
    pub fn is_fully_durable(&self) -> bool {
        self.in_flight.is_none() && self.next_batch.events.is_empty() && !self.has_ended
    }

    /// When waiters are to be let in whose turn came already.
    fn serve_at(&self) -> Option<Tick> {
        let may_grant = self.space_level == SpaceLevel::Plenty;
        let now = self.stamper.last();
        (self.serve_due && may_grant).then(|| self.state.restore_quarantine_until(now).unwrap_or(now))
    }

    /// Decides whatever waits, and writes it unless a write is under way: then it is written next. So the disk and
    /// the decisions need not wait for each other.
    fn decide_and_write(&mut self, now: Tick, microseconds: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.has_ended {
            return effects;
        }
        if self.in_flight.is_some() {
            self.decide_pending(self.settings.stride.max(1));
        }
        // A batch that wrote nothing is answered at once, and no write comes back to go on with the rest.
        while self.in_flight.is_none() {
            if self.next_batch.answers.len() < self.settings.write_threshold {
                self.decide_pending(usize::MAX);
            }
            self.finish_batch(now, microseconds);
            if self.next_batch.is_empty() {
                break;
            }
            let successor = self.next_batch.successor();
            let batch = std::mem::replace(&mut self.next_batch, successor);
            effects.extend(self.append_or_answer(batch, now));
            if self.inbox.is_empty() {
                break;
            }
        }
        effects
    }

    /// Decides at most so many of those that fit into the next batch, in the order in which they came.
    fn decide_pending(&mut self, max_count: usize) {
        for _ in 0..max_count {
            if !self.has_capacity_in_next_batch() {
                break;
            }
            let Some((caller, command, stamp)) = self.inbox.pop_front() else { break };
            if self.space_level == SpaceLevel::Exhausted {
                self.next_batch.decide_without_space(&self.state, caller, &command, stamp);
            } else {
                self.next_batch.decide_request(&mut self.state, caller, &command, stamp);
            }
        }
    }

    fn has_capacity_in_next_batch(&self) -> bool {
        // At least one of each, whatever the settings say: none would be a writer that stands still or spins.
        let (max_batch, max_bytes) = (self.settings.max_batch.max(1), self.settings.max_batch_bytes.max(1));
        let PendingBatch { answers, events, bytes, .. } = &self.next_batch;
        answers.len() < max_batch && events.len() < max_batch && *bytes < max_bytes
    }

    /// What the registrar adds to a batch right before it is written: whose turn has come, what is over, what time it is.
    fn finish_batch(&mut self, now: Tick, microseconds: u64) {
        if self.space_level == SpaceLevel::Exhausted {
            return;
        }
        // A heartbeat that arrived in time counts, so nothing is over for the sake of others before what still waits in the
        // inbox was decided.
        let until = self.inbox.front().map_or(now, |(_, _, stamp)| *stamp);
        let has_capacity = self.next_batch.events.len() < self.settings.max_batch.max(1);
        if has_capacity && self.serve_at().is_some_and(|at| at <= until) {
            self.next_batch.serve_waiters(&mut self.state, until, self.settings.max_sweep.max(1));
            self.serve_due = false;
        }
        self.next_batch.expire_leases(&mut self.state, until, self.settings.max_sweep.max(1));
        if self.inbox.is_empty() {
            let reading = ClockReading { clock: self.clock.clone(), microseconds };
            self.next_batch.record_clock_mark(&mut self.state, now, reading);
        }
        self.serve_due |= self.next_batch.has_unserved;
    }

    /// Appends the batch, or answers at once where there is nothing to append: then what the answers rest
    /// on is durable already.
    fn append_or_answer(&mut self, mut batch: PendingBatch, now: Tick) -> Vec<Effect> {
        if batch.events.is_empty() {
            return self.answers(batch, now).collect();
        }
        let write = batch.take_write();
        self.in_flight = Some(batch);
        vec![Effect::Append(write)]
    }

    fn publish_durable(&mut self, now: Tick) -> Vec<Effect> {
        let Some(mut batch) = self.in_flight.take() else { return Vec::new() };
        let events = std::mem::take(&mut batch.events);
        let wait_ends = wait_end_effects(&events, now);
        let mut effects = Vec::with_capacity(1 + batch.answers.len() + wait_ends.len());
        effects.push(Effect::Publish(events));
        effects.extend(self.answers(batch, now));
        // After the answers: one of them may be where a waiter learns of its ticket.
        effects.extend(wait_ends);
        effects
    }

    fn answers(&self, batch: PendingBatch, now: Tick) -> impl Iterator<Item = Effect> {
        let reply = move |decided: DecidedRequest| {
            let is_too_late = decided.has_expired_grant(now);
            let DecidedRequest { request: caller, answer: kernel_answer, stamp, .. } = decided;
            let answered = Reply::Answered { answer: kernel_answer, stamp };
            answer(caller, if is_too_late { Reply::TooLate } else { answered })
        };
        batch.answers.into_iter().map(reply)
    }

    fn step_down(&mut self, failure: AppendFailure) -> Vec<Effect> {
        self.has_ended = true;
        let lost =
            if failure == AppendFailure::OutcomeUnknown { Reply::OutcomeUnknown } else { Reply::Unavailable };
        let in_flight = self.in_flight.take().map(|batch| batch.answers).unwrap_or_default();
        let in_flight = in_flight.into_iter().map(|decided| answer(decided.request, lost.clone()));
        // Decided or not: nothing of it was written.
        let decided = std::mem::take(&mut self.next_batch.answers).into_iter().map(|decided| decided.request);
        let waiting = decided.chain(self.inbox.drain(..).map(|(caller, ..)| caller));
        let waiting = waiting.map(|caller| answer(caller, Reply::Unavailable));
        let mut effects: Vec<_> = in_flight.chain(waiting).collect();
        effects.push(Effect::StepDown(failure));
        effects
    }
}

/// What the events mean for those who wait, in their order. Whoever is told at `now` that its turn has come still
/// holds what it was granted.
fn wait_end_effects(events: &[Event], now: Tick) -> Vec<Effect> {
    let mut effects: Vec<Effect> = Vec::new();
    for event in events {
        match event {
            Event::Issued(issued) => {
                let Some(ticket) = issued.ticket else { continue };
                let is_past = is_expired(now.0, issued.terms.expires_at.0);
                match effects.last_mut() {
                    Some(Effect::Served { ticket: last, leases }) if *last == ticket && !is_past => {
                        leases.push(issued.fence);
                    }
                    // One expired lease is enough: the grant is all or nothing.
                    Some(Effect::Served { ticket: last, .. } | Effect::ServedTooLate { ticket: last })
                        if *last == ticket =>
                    {
                        effects.pop();
                        effects.push(Effect::ServedTooLate { ticket });
                    }
                    _ if is_past => effects.push(Effect::ServedTooLate { ticket }),
                    _ => effects.push(Effect::Served { ticket, leases: vec![issued.fence] }),
                }
            }
            Event::Left { ticket, end, .. } => effects.push(Effect::Unserved { ticket: *ticket, end: *end }),
            _ => {}
        }
    }
    effects
}

fn answer(caller: RequestId, reply: Reply) -> Effect {
    Effect::Answer { request: caller, reply }
}
