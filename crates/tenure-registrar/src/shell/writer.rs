//! The writer's thread: takes what has gathered, lets the registrar step, signs, writes, answers.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tenure_core::kernel::{Answer, ClockReading, Command, Fence, HashKey, Refusal, State};
use tenure_ledger::signing::{
    KeyAdded, KeyEntry, KeyId, Keyring, Leaf, LedgerId, NodeKey, Passport, SealedBatch, seal_batch,
};
use tenure_ledger::{AppendError, Batch, BatchBytes, Ledger, Room, Seq};
use thiserror::Error;

use super::callers::Callers;
use super::clock::{Clock, boot_microseconds};
use super::feed::{Durable, Feed};
use super::inbox::{Found, Inbox, Response};
use super::proof;
use super::publisher::{Audience, Outcome, Publisher};
use super::replay::{Replay, ReplayError, replay};
use super::trouble::{Trouble, describe};
use super::view::View;
use crate::registrar::{AppendFailure, Effect, Input, Registrar, Reply, StartFailure, Write};
use crate::settings::Settings;

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
    /// The key is not one of this ledger's.
    #[error(
        "key {0} is not one of this ledger's, and nobody vouches for it; put back the key file that belongs to the \
         ledger"
    )]
    ForeignKey(KeyId),
    /// The key cannot be made known.
    #[error("the first entry cannot be written")]
    FirstEntry(#[from] AppendError),
    /// The system gives no thread or descriptor.
    #[error("the system gives the writer no thread")]
    System(#[from] io::Error),
}

/// Where requests go in. It can be cloned and shared.
#[derive(Clone)]
pub struct Handle {
    inbox: Arc<Inbox>,
    clock: Arc<dyn Clock>,
    most: usize,
    ledger: LedgerId,
    key: Arc<NodeKey>,
    view: Arc<View>,
}

impl Handle {
    /// Asks. `respond` is called once, on the writer's thread or, when there is no room, on this one.
    pub fn ask(&self, command: Command, respond: impl FnOnce(Response) + Send + 'static) {
        self.inbox.put(&*self.clock, command, self.most, Box::new(respond));
    }

    /// Asks, and waits for the response.
    pub fn ask_and_wait(&self, command: Command) -> Response {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.ask(command, move |response| drop(sender.send(response)));
        // The writer answers everybody before it ends; if it was killed, nobody knows.
        receiver.recv().unwrap_or(Reply::OutcomeUnknown.into())
    }

    /// What a holder can show to others of a lease that it was just granted, or renewed, or told of again.
    pub fn passport(&self, response: &Response, fence: Fence) -> Option<Passport> {
        let proof = response.proof.as_deref();
        self.view.read(|state| proof::passport(proof, self.ledger, &self.key, fence, state))
    }

    /// Which ledger this is.
    pub fn ledger(&self) -> LedgerId {
        self.ledger
    }

    /// What can be read without asking.
    pub fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// Makes the writer look whether there is room again.
    pub(crate) fn wake(&self) {
        self.inbox.wake();
    }
}

/// A running writer.
pub struct Writer<L> {
    handle: Handle,
    feed: Arc<Feed>,
    trouble: Arc<Trouble>,
    thread: JoinHandle<(L, Option<WriterFailure>)>,
}

/// How long a writer rests whose ledger could not be written.
const REST_MICROSECONDS: u64 = 1_000_000;

/// While it rests for longer, it looks this often whether there is room again.
const LOOK: Duration = Duration::from_millis(100);

/// What ended a writer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriterFailure {
    /// The ledger: nothing more can be written by this process.
    #[error("the ledger failed: {failure}")]
    Append {
        /// What became of the last write.
        failure: AppendFailure,
        /// What the ledger said.
        #[source]
        source: Option<AppendError>,
    },
    /// It went on after an error, and the ledger does not add up any more.
    #[error("the ledger cannot be gone on with")]
    Start(#[from] StartError),
}

/// What a writer needs beside its ledger.
pub struct Office {
    /// What the ledger adds up to.
    pub replay: Replay,
    /// What it signs with.
    pub key: Arc<NodeKey>,
    /// Where its time comes from.
    pub clock: Arc<dyn Clock>,
    /// How much it takes on at once.
    pub settings: Settings,
    /// For the tables of the state, so that nobody can choose names that collide.
    pub hash_key: HashKey,
}

impl<L: Ledger + Send + 'static> Writer<L> {
    /// Starts to take requests. `feed` is told everything; see [`super::Service`] for the rest of a ledger in a
    /// directory.
    pub fn start(mut ledger: L, mut office: Office, feed: Feed) -> Result<Self, StartError> {
        introduce_key(&mut ledger, &mut office.replay, &office.key)?;
        let Office { replay, key, clock, settings, hash_key } = office;
        let id = replay.ledger();
        let feed = Arc::new(feed);
        let inbox = Arc::new(Inbox::new()?);
        let (state, durable) = (replay.state().clone(), replay.into_state());
        let (registrar, effects, stamper) = start_registrar(id, state, &*clock, settings)?;
        let view = Arc::new(View::new(durable, stamper, clock.clone()));
        let handle = Handle {
            inbox: inbox.clone(),
            clock: clock.clone(),
            most: settings.inbox,
            ledger: id,
            key: key.clone(),
            view: view.clone(),
        };
        let trouble = Arc::new(Trouble::default());
        let publisher = Publisher::start(Audience { ledger: id, view, feed: feed.clone() })?;
        let run = Run {
            ledger,
            id,
            registrar,
            inbox: inbox.clone(),
            clock,
            key,
            settings,
            hash_key,
            publisher,
            callers: Callers::default(),
            written: None,
            error: None,
            trouble: trouble.clone(),
        };
        let end = TurnAway(inbox, feed.clone());
        let run = move || {
            // However this ends, by a panic too, nobody is left waiting for somebody who is not there. It comes last:
            // whatever is durable is told before the end is.
            let _end = end;
            run.run(effects)
        };
        let thread = std::thread::Builder::new().name("tenure-writer".into());
        Ok(Self { handle, feed, trouble, thread: thread.spawn(run)? })
    }

    /// Where requests go in.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// What happened, from any point on.
    pub fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    /// Why nothing can be written at the moment, for people; nothing if all is well.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.get()
    }

    /// Whether the writer has ended by itself.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Takes no more requests, answers those that wait, and gives the ledger back: in good order, or with what
    /// ended the writer.
    pub fn stop(self) -> (L, Option<WriterFailure>) {
        self.handle.inbox.close();
        match self.thread.join() {
            Ok(end) => end,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// The first batch of a ledger says with which key it is signed.
fn introduce_key(ledger: &mut dyn Ledger, replay: &mut Replay, key: &NodeKey) -> Result<(), StartError> {
    let keyring: &Keyring = replay.keyring();
    if keyring.live().any(|live| live == key.public_key()) {
        return Ok(());
    }
    if keyring.first().is_some() {
        return Err(StartError::ForeignKey(key.id()));
    }
    let added = KeyEntry::Added(KeyAdded::new(replay.ledger(), key.public_key(), key));
    let (first, records) = (Seq(ledger.head().seq.0 + 1), vec![added.to_record()]);
    let head = ledger.append(ledger.head().seq, &records, &[])?;
    replay.apply(&Batch { first, records, seal: Vec::new(), hash: head.hash })?;
    Ok(())
}

fn start_registrar(
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

struct Run<L> {
    ledger: L,
    id: LedgerId,
    registrar: Registrar,
    inbox: Arc<Inbox>,
    clock: Arc<dyn Clock>,
    key: Arc<NodeKey>,
    settings: Settings,
    hash_key: HashKey,
    publisher: Publisher,
    callers: Callers,
    /// What was written last and is not published yet.
    written: Option<(Durable, SealedBatch)>,
    /// Why the last write failed.
    error: Option<AppendError>,
    trouble: Arc<Trouble>,
}

impl<L: Ledger> Run<L> {
    fn run(mut self, first: Vec<Effect>) -> (L, Option<WriterFailure>) {
        let mut carried = self.carry_out(first);
        loop {
            match carried {
                Carried::On(Some(write)) => carried = self.write(write),
                Carried::On(None) => {
                    self.registrar.set_room(self.ledger.room());
                    let found = self.inbox.take(&*self.clock, self.patience());
                    if found.is_closed && found.waiting.is_empty() {
                        return (self.ledger, None);
                    }
                    carried = self.begin_batch(found);
                }
                // Nothing was written: what was decided is dropped, and what is in the ledger counts.
                Carried::Ended(AppendFailure::NotWritten) => {
                    self.trouble.set(
                        self.error.take().map(|error| describe("the ledger could not be written", &error)),
                    );
                    if self.is_stopped_while_it_rests() {
                        return (self.ledger, None);
                    }
                    match self.begin_again() {
                        Ok(begun) => carried = self.carry_out(begun),
                        Err(error) => return (self.ledger, Some(error.into())),
                    }
                }
                Carried::Ended(failure) => {
                    let source = self.error.take();
                    return (self.ledger, Some(WriterFailure::Append { failure, source }));
                }
            }
        }
    }

    /// Signs and writes, and then steps with everything that came in meanwhile before it steps with the outcome: so
    /// that whoever came in time is stamped in time.
    fn write(&mut self, write: Write) -> Carried {
        let Write { records, mut leaves } = write;
        let before = self.ledger.head();
        let unsealed = BatchBytes::new(Seq(before.seq.0 + 1), &records);
        leaves.push(Leaf::of_batch(self.id, before.hash, &unsealed));
        let first = unsealed.first();
        let outcome = match seal_batch(&self.key, self.id, first.0, &leaves) {
            Ok(sealed) => {
                // Their bytes are all that is needed from here on.
                drop(records);
                let batch = unsealed.sealed(&sealed.seal().to_bytes());
                match self.ledger.append_batch(&batch) {
                    Ok(head) => {
                        self.written = Some((Durable { batch, hash: head.hash }, sealed));
                        self.trouble.clear();
                        Ok(())
                    }
                    Err(error) => {
                        let failure = failure_of(&error);
                        self.error = Some(error);
                        Err(failure)
                    }
                }
            }
            // More than can be signed at once; the limits of a batch keep it from that.
            Err(_) => Err(AppendFailure::NotWritten),
        };
        self.registrar.set_room(self.ledger.room());
        let found = self.inbox.take(&*self.clock, Some(Duration::ZERO));
        let microseconds = found.microseconds;
        let mut effects = self.feed(found);
        effects.extend(self.registrar.settle(outcome, microseconds));
        // Whoever is answered need not wait until the next batch is decided.
        match self.carry_out(effects) {
            Carried::On(_) => Carried::On(self.next_write(microseconds)),
            ended => ended,
        }
    }

    fn begin_batch(&mut self, found: Found) -> Carried {
        let microseconds = found.microseconds;
        let mut effects = self.feed(found);
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

    fn feed(&mut self, found: Found) -> Vec<Effect> {
        let waiting = found.waiting.into_iter();
        let refused = waiting.filter_map(|waiting| {
            let caller = self.callers.add(waiting.respond);
            self.registrar.enqueue(caller, waiting.command, waiting.microseconds)
        });
        refused.collect()
    }

    fn carry_out(&mut self, effects: Vec<Effect>) -> Carried {
        let mut carried = Carried::On(None);
        let mut outcome = Outcome::default();
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
                // Who waits learns it from what was published.
                Effect::Served { .. } | Effect::Unserved { .. } => {}
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
    fn is_stopped_while_it_rests(&self) -> bool {
        let until = boot_microseconds().saturating_add(REST_MICROSECONDS);
        loop {
            let left = Duration::from_micros(until.saturating_sub(boot_microseconds()));
            let found = self.inbox.take(&*self.clock, Some(left.max(LOOK)));
            let has_room = self.ledger.room() > Room::Nothing;
            let reply = if has_room {
                Reply::Unavailable
            } else {
                Reply::Answered {
                    answer: Answer::Refused(Refusal::NoSpace),
                    stamp: self.registrar.state().now(),
                }
            };
            found.waiting.into_iter().for_each(|waiting| (waiting.respond)(reply.clone().into()));
            let has_rested = boot_microseconds() >= until;
            if found.is_closed || has_room && has_rested {
                return found.is_closed;
            }
        }
    }

    /// Drops what was decided and goes on from what the ledger holds.
    fn begin_again(&mut self) -> Result<Vec<Effect>, StartError> {
        self.written = None;
        let state = self.registrar.state();
        let empty = State::new(state.tag(), state.limits().clone(), self.hash_key);
        let replay = replay(&self.ledger, self.id, empty, self.hash_key)?;
        let (registrar, effects, _) =
            start_registrar(self.id, replay.into_state(), &*self.clock, self.settings)?;
        self.registrar = registrar;
        Ok(effects)
    }

    /// How long to wait for a request before there is something to do without one.
    fn patience(&self) -> Option<Duration> {
        let at = self.registrar.wake_at()?;
        Some(Duration::from_micros(at.saturating_sub(self.clock.microseconds())))
    }
}

fn failure_of(error: &AppendError) -> AppendFailure {
    match error {
        AppendError::Overtaken { .. } => AppendFailure::Overtaken,
        AppendError::OutcomeUnknown { .. } => AppendFailure::Unknown,
        _ => AppendFailure::NotWritten,
    }
}

struct TurnAway(Arc<Inbox>, Arc<Feed>);

impl Drop for TurnAway {
    fn drop(&mut self) {
        self.0.turn_away();
        self.1.end();
    }
}

enum Carried {
    On(Option<Write>),
    Ended(AppendFailure),
}
