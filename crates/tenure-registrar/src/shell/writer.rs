//! The writer's thread: takes what has gathered, lets the registrar step, writes, answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tenure_core::kernel::{ClockReading, Command, Event, State};
use tenure_core::ledger::EventRecord;
use tenure_ledger::{AppendError, Ledger};
use thiserror::Error;

use super::clock::Clock;
use super::inbox::{Found, Inbox};
use super::replay::{ReplayError, replay};
use crate::registrar::{AppendFailure, Caller, Effect, Input, Registrar, Reply, StartFailure};
use crate::settings::Settings;
use crate::shell::inbox::Responder;

/// Is told what has become durable, before anybody is answered. It runs on the writer's thread: it must not wait.
pub type Publish = Box<dyn FnMut(&[Event], &State) + Send>;

/// Why a writer does not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The ledger does not add up to a state.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The registrar refuses the state.
    #[error(transparent)]
    Registrar(#[from] StartFailure),
    /// The system gives no thread.
    #[error("no thread for the writer")]
    Thread(#[source] std::io::Error),
}

/// Where requests go in. It can be cloned and shared.
#[derive(Clone)]
pub struct Handle {
    inbox: Arc<Inbox>,
    clock: Arc<dyn Clock>,
    most: usize,
}

impl Handle {
    /// Asks. `respond` is called once, on the writer's thread or, when there is no room, on this one.
    pub fn ask(&self, command: Command, respond: impl FnOnce(Reply) + Send + 'static) {
        self.inbox.put(&*self.clock, command, self.most, Box::new(respond));
    }

    /// Asks, and waits for the reply.
    pub fn ask_and_wait(&self, command: Command) -> Reply {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.ask(command, move |reply| drop(sender.send(reply)));
        // The writer answers everybody before it ends; if it was killed, nobody knows.
        receiver.recv().unwrap_or(Reply::OutcomeUnknown)
    }
}

/// A running writer.
pub struct Writer<L> {
    handle: Handle,
    thread: JoinHandle<(L, Option<AppendFailure>)>,
}

impl<L: Ledger + Send + 'static> Writer<L> {
    /// Replays `ledger` onto `empty` and starts to take requests.
    pub fn start(
        ledger: L,
        empty: State,
        clock: Arc<dyn Clock>,
        settings: Settings,
        publish: Publish,
    ) -> Result<Self, StartError> {
        let state = replay(&ledger, empty)?;
        let reading = ClockReading { clock: clock.id(), microseconds: clock.microseconds() };
        // What waits is bounded where it comes in; what was taken out has been accepted.
        let inner = Settings { inbox: usize::MAX, ..settings };
        let (registrar, effects) = Registrar::start(state, reading, clock.wall(), inner)?;
        let inbox = Arc::new(Inbox::default());
        let handle = Handle { inbox: inbox.clone(), clock: clock.clone(), most: settings.inbox };
        let run = Run { ledger, registrar, inbox, clock, publish, callers: HashMap::new(), last_caller: 0 };
        let thread = std::thread::Builder::new().name("tenure-writer".into()).spawn(move || run.run(effects));
        Ok(Self { handle, thread: thread.map_err(StartError::Thread)? })
    }

    /// Where requests go in.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Takes no more requests, answers those that wait, and gives the ledger back: in good order, or with what
    /// ended the writer.
    pub fn stop(self) -> (L, Option<AppendFailure>) {
        self.handle.inbox.close();
        match self.thread.join() {
            Ok(end) => end,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

struct Run<L> {
    ledger: L,
    registrar: Registrar,
    inbox: Arc<Inbox>,
    clock: Arc<dyn Clock>,
    publish: Publish,
    callers: HashMap<Caller, Responder>,
    last_caller: u64,
}

impl<L: Ledger> Run<L> {
    fn run(mut self, first: Vec<Effect>) -> (L, Option<AppendFailure>) {
        // However this ends, by a panic too, nobody is left waiting for somebody who is not there.
        let _end = TurnAway(self.inbox.clone());
        let mut effects = first;
        loop {
            match self.carry_out(effects) {
                Carried::On(Some(records)) => effects = self.write(&records),
                Carried::On(None) => {
                    let found = self.inbox.take(&*self.clock, self.patience());
                    if found.is_closed && found.waiting.is_empty() {
                        return (self.ledger, None);
                    }
                    effects = self.feed(found, Input::Woken);
                }
                Carried::Ended(failure) => return (self.ledger, Some(failure)),
            }
        }
    }

    /// Writes, and then steps with everything that came in meanwhile before it steps with the outcome: so that
    /// whoever came in time is stamped in time.
    fn write(&mut self, records: &[EventRecord]) -> Vec<Effect> {
        let head = self.ledger.head().seq;
        let outcome = match self.ledger.append(head, records, &[]) {
            Ok(_) => Ok(()),
            Err(AppendError::Overtaken { .. }) => Err(AppendFailure::Overtaken),
            Err(AppendError::OutcomeUnknown { .. }) => Err(AppendFailure::Unknown),
            Err(_) => Err(AppendFailure::NotWritten),
        };
        let found = self.inbox.take(&*self.clock, Some(Duration::ZERO));
        self.feed(found, Input::Appended(outcome))
    }

    fn feed(&mut self, found: Found, then: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        for waiting in found.waiting {
            self.last_caller += 1;
            let caller = Caller(self.last_caller);
            self.callers.insert(caller, waiting.respond);
            let asked = Input::Asked { caller, command: waiting.command };
            effects.extend(self.registrar.step(asked, waiting.microseconds));
        }
        effects.extend(self.registrar.step(then, found.microseconds));
        effects
    }

    fn carry_out(&mut self, effects: Vec<Effect>) -> Carried {
        let mut to_write = None;
        for effect in effects {
            match effect {
                Effect::Append(records) => to_write = Some(records),
                Effect::Publish(events) => (self.publish)(&events, self.registrar.state()),
                Effect::Answer { caller, reply } => {
                    if let Some(respond) = self.callers.remove(&caller) {
                        respond(reply);
                    }
                }
                // Who waits learns it from what was published.
                Effect::Served { .. } | Effect::Unserved { .. } => {}
                Effect::StepDown(failure) => return Carried::Ended(failure),
            }
        }
        Carried::On(to_write)
    }

    /// How long to wait for a request before there is something to do without one.
    fn patience(&self) -> Option<Duration> {
        let at = self.registrar.wake_at()?;
        Some(Duration::from_micros(at.saturating_sub(self.clock.microseconds())))
    }
}

struct TurnAway(Arc<Inbox>);

impl Drop for TurnAway {
    fn drop(&mut self) {
        self.0.turn_away();
    }
}

enum Carried {
    On(Option<Vec<EventRecord>>),
    Ended(AppendFailure),
}
