//! The writer's thread: takes what is in the inbox, steps the registrar, signs, writes, publishes.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::kernel::{ClockReading, CommandOutcome, HashSeed, KernelState, Rejection};
use tenure_ledger::signing::{LedgerId, SignedBatch};
use tenure_ledger::{AppendError, Ledger, SpaceLevel};

use super::appender::{AppendResult, AppendThread, Appender, FailedAppend};
use super::clock::{Clock, boot_microseconds};
use super::feed::{DurableBatch, Feed};
use super::inbox::{Inbox, InboxBatch};
use super::pending_replies::{PendingReplies, WaitListeners};
use super::publisher::{PendingWaitOutcome, Publication, Publisher};
use super::replay::replay;
use super::view::{BackgroundHealth, format_error_chain};
use super::writer::{StartError, WriterFailure};
use crate::pending_batch::BatchSettings;
use crate::registrar::{AppendFailure, BatchWrite, Effect, Input, Registrar, Reply, StartFailure};

/// How long a writer rests whose ledger could not be written.
const BACKOFF_MICROSECONDS: u64 = 1_000_000;

/// While it rests for longer, it looks this often whether there is room again.
const SPACE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Starts a registrar on what the ledger adds up to.
pub(super) fn start_registrar(
    ledger: LedgerId,
    state: KernelState,
    clock: &dyn Clock,
    settings: BatchSettings,
) -> Result<(Registrar, Vec<Effect>, crate::TickClock), StartFailure> {
    let reading = ClockReading { clock: clock.id(), microseconds: clock.microseconds() };
    let stamper = crate::TickClock::resume(&state, &reading);
    // What waits is bounded where it comes in; what was taken out has been accepted.
    let unbounded = BatchSettings { max_waiting: usize::MAX, ..settings };
    let (registrar, effects) = Registrar::start(ledger, state, reading, clock.wall_nanoseconds(), unbounded)?;
    Ok((registrar, effects, stamper))
}

pub(super) struct WriterLoop {
    /// Nothing while the scribe has it.
    pub(super) appender: Option<Appender>,
    pub(super) append_thread: AppendThread,
    pub(super) registrar: Registrar,
    pub(super) inbox: Arc<Inbox>,
    pub(super) pending: InboxBatch,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) settings: BatchSettings,
    pub(super) hash_seed: HashSeed,
    pub(super) publisher: Publisher,
    pub(super) pending_replies: PendingReplies,
    /// What was written last and is not published yet.
    pub(super) unpublished: Option<(DurableBatch, SignedBatch)>,
    pub(super) error: Option<AppendError>,
    pub(super) health: Arc<BackgroundHealth>,
}

impl WriterLoop {
    /// Runs until it is told to stop, or cannot go on.
    pub(super) fn run(mut self, first: Vec<Effect>) -> (Box<dyn Ledger>, Option<WriterFailure>) {
        let mut carried = self.apply_effects(first);
        loop {
            match carried {
                EffectsOutcome::Continue(Some(write)) => carried = self.write(write),
                EffectsOutcome::Continue(None) => {
                    self.registrar.set_space_level(self.space_level());
                    let patience = self.wake_timeout();
                    self.inbox.take(&*self.clock, patience, &mut self.pending);
                    if self.pending.is_closed && self.pending.requests.is_empty() {
                        return (self.into_ledger(), None);
                    }
                    carried = self.begin_batch();
                }
                // Nothing was written: what was decided is dropped, and what is in the ledger counts.
                EffectsOutcome::Ended(AppendFailure::NotWritten) => {
                    self.health.set(
                        self.error
                            .take()
                            .map(|error| format_error_chain("the ledger could not be written", &error)),
                    );
                    if self.is_stopped_during_backoff() {
                        return (self.into_ledger(), None);
                    }
                    match self.restart() {
                        Ok(effects) => carried = self.apply_effects(effects),
                        Err(error) => return (self.into_ledger(), Some(error.into())),
                    }
                }
                EffectsOutcome::Ended(failure) => {
                    let source = self.error.take();
                    return (self.into_ledger(), Some(WriterFailure::Append { failure, source }));
                }
            }
        }
    }

    /// Writes. With many to answer the next batch is decided meanwhile; with few, handing over would take longer than
    /// that wins.
    fn write(&mut self, write: BatchWrite) -> EffectsOutcome {
        let mut appender = self.appender.take().expect(APPENDER_RETURNED);
        let (appender, written) = if write.records.len() <= MAX_INLINE_EVENTS {
            let written = appender.append(write);
            (appender, written)
        } else {
            let Self {
                append_thread, registrar, inbox, pending: found, clock, pending_replies: callers, ..
            } = self;
            let mut ahead = PipelinedDecider {
                registrar,
                inbox,
                pending: found,
                clock: &**clock,
                pending_replies: callers,
            };
            append_thread.append(appender, write, || ahead.decide())
        };
        self.appender = Some(appender);
        self.complete_write(written)
    }

    /// Steps with everything that came in meanwhile before it steps with the outcome: so that whoever came in time is
    /// stamped in time.
    fn complete_write(&mut self, written: AppendResult) -> EffectsOutcome {
        let outcome = match written {
            Ok(written) => {
                self.unpublished = Some(written);
                self.health.clear();
                Ok(())
            }
            Err(FailedAppend { failure, source }) => {
                self.error = source;
                Err(failure)
            }
        };
        self.registrar.set_space_level(self.space_level());
        self.inbox.take(&*self.clock, Some(Duration::ZERO), &mut self.pending);
        let microseconds = self.pending.microseconds;
        let mut effects = self.feed();
        effects.extend(self.registrar.complete_append(outcome, microseconds));
        // Whoever is answered need not wait until the next batch is decided.
        match self.apply_effects(effects) {
            EffectsOutcome::Continue(_) => EffectsOutcome::Continue(self.next_write(microseconds)),
            ended => ended,
        }
    }

    fn begin_batch(&mut self) -> EffectsOutcome {
        let microseconds = self.pending.microseconds;
        let mut effects = self.feed();
        effects.extend(self.registrar.step(Input::Woken, microseconds));
        self.inbox.set_backlog(self.registrar.pending_request_count());
        self.apply_effects(effects)
    }

    fn next_write(&mut self, microseconds: u64) -> Option<BatchWrite> {
        let effects = self.registrar.step(Input::Woken, microseconds);
        self.inbox.set_backlog(self.registrar.pending_request_count());
        match self.apply_effects(effects) {
            EffectsOutcome::Continue(write) => write,
            EffectsOutcome::Ended(_) => unreachable!("only a write that failed ends a registrar"),
        }
    }

    fn feed(&mut self) -> Vec<Effect> {
        feed(&mut self.registrar, &mut self.pending_replies, &mut self.pending)
    }

    fn apply_effects(&mut self, effects: Vec<Effect>) -> EffectsOutcome {
        let mut carried = EffectsOutcome::Continue(None);
        let mut outcome =
            Publication { answers: Vec::with_capacity(effects.len()), ..Publication::default() };
        for effect in effects {
            match effect {
                Effect::Append(write) => carried = EffectsOutcome::Continue(Some(write)),
                Effect::Publish(events) => {
                    outcome.events = events;
                    outcome.written = self.unpublished.take();
                }
                Effect::Answer { request: caller, reply } => {
                    outcome.answers.extend(self.pending_replies.take(caller).map(|respond| (respond, reply)));
                }
                Effect::Served { ticket, leases } => {
                    outcome.ended_tickets.push((ticket, PendingWaitOutcome::Served(leases)))
                }
                Effect::Unserved { ticket, end } => {
                    outcome.ended_tickets.push((ticket, PendingWaitOutcome::Unserved(end)))
                }
                Effect::ServedTooLate { ticket } => {
                    outcome.ended_tickets.push((ticket, PendingWaitOutcome::TooLate))
                }
                Effect::StepDown(failure) => carried = EffectsOutcome::Ended(failure),
            }
        }
        if outcome.written.is_some() || !outcome.answers.is_empty() {
            self.publisher.publish(outcome);
        }
        carried
    }

    /// Before it begins again: a ledger that could not be written a moment ago is not asked without end. Whoever
    /// asks meanwhile is told at once. Says whether this writer was told to stop.
    fn is_stopped_during_backoff(&mut self) -> bool {
        // Who was taken out has been told.
        self.inbox.set_backlog(0);
        let until = boot_microseconds().saturating_add(BACKOFF_MICROSECONDS);
        loop {
            let remaining = Duration::from_micros(until.saturating_sub(boot_microseconds()));
            self.inbox.take(&*self.clock, Some(remaining.max(SPACE_CHECK_INTERVAL)), &mut self.pending);
            let has_space = self.space_level() > SpaceLevel::Exhausted;
            let reply = if has_space {
                Reply::Unavailable
            } else {
                Reply::Answered {
                    answer: CommandOutcome::Rejected(Rejection::NoSpace),
                    stamp: self.registrar.state().now(),
                }
            };
            self.pending.requests.drain(..).for_each(|waiting| (waiting.respond)(reply.clone().into()));
            let has_rested = boot_microseconds() >= until;
            if self.pending.is_closed || has_space && has_rested {
                return self.pending.is_closed;
            }
        }
    }

    /// Drops what was decided and goes on from what the ledger holds.
    fn restart(&mut self) -> Result<Vec<Effect>, StartError> {
        self.unpublished = None;
        let limits = self.registrar.state().limits().clone();
        let reader = self.appender().ledger.reader();
        let replay = replay(&*reader, limits, self.hash_seed)?;
        let (registrar, effects, _) =
            start_registrar(reader.ledger(), replay.into_state(), &*self.clock, self.settings)?;
        self.registrar = registrar;
        Ok(effects)
    }

    fn space_level(&self) -> SpaceLevel {
        self.appender().ledger.space_level(self.registrar.state().live_count())
    }

    fn appender(&self) -> &Appender {
        self.appender.as_ref().expect(APPENDER_RETURNED)
    }

    fn into_ledger(self) -> Box<dyn Ledger> {
        self.appender.expect(APPENDER_RETURNED).ledger
    }

    /// How long to wait for a request before there is something to do without one.
    fn wake_timeout(&self) -> Option<Duration> {
        let at = self.registrar.wake_at()?;
        Some(Duration::from_micros(at.saturating_sub(self.clock.microseconds())))
    }
}

/// What can go on while the scribe writes.
struct PipelinedDecider<'a> {
    registrar: &'a mut Registrar,
    inbox: &'a Inbox,
    pending: &'a mut InboxBatch,
    clock: &'a dyn Clock,
    pending_replies: &'a mut PendingReplies,
}

impl PipelinedDecider<'_> {
    /// Decides some of what has come in, and says whether there is more. Nobody is answered: all of it rests on what is
    /// being written.
    fn decide(&mut self) -> bool {
        self.inbox.take(self.clock, Some(Duration::ZERO), self.pending);
        let microseconds = self.pending.microseconds;
        let mut effects = feed(self.registrar, self.pending_replies, self.pending);
        effects.extend(self.registrar.step(Input::Woken, microseconds));
        self.inbox.set_backlog(self.registrar.pending_request_count());
        assert!(effects.is_empty(), "what is decided ahead waits for what is written before");
        self.registrar.can_decide()
    }
}

fn feed(registrar: &mut Registrar, callers: &mut PendingReplies, found: &mut InboxBatch) -> Vec<Effect> {
    let refused = found.requests.drain(..).filter_map(|waiting| {
        let caller = callers.add(waiting.respond);
        registrar.enqueue(caller, waiting.command, waiting.microseconds)
    });
    refused.collect()
}

/// With so few events in a write, the writer does it by itself.
const MAX_INLINE_EVENTS: usize = 16;

const APPENDER_RETURNED: &str = "the pen comes back before the writer goes on";

/// Tells everybody, when it is dropped, that nobody answers any more.
pub(super) struct RejectOnDrop(pub(super) Arc<Inbox>, pub(super) Arc<Feed>, pub(super) Arc<WaitListeners>);

impl Drop for RejectOnDrop {
    fn drop(&mut self) {
        self.0.reject_all();
        self.1.end();
        self.2.close_all();
    }
}

enum EffectsOutcome {
    Continue(Option<BatchWrite>),
    Ended(AppendFailure),
}
