//! The writer, for async callers. The only file that knows the registrar's shell.

use std::path::Path;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tenure_core::kernel::{Command, Event, Fence, HashKey, Limits, State, Tick};
use tenure_ledger::EmbeddedLedger;
use tenure_ledger::embedded::{OpenError, Options};
use tenure_registrar::shell::{BootClock, Clock, Handle, ReplayError, StartError, Writer, replay};
use tenure_registrar::{AppendFailure, Reply};
use thiserror::Error;
use tokio::sync::{oneshot, watch};

/// Why there is no registrar.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RegistrarError {
    /// The ledger does not open.
    #[error(transparent)]
    Ledger(#[from] OpenError),
    /// What is in the ledger does not add up.
    #[error("the ledger can be read, but not believed")]
    Replay(#[from] ReplayError),
    /// The writer does not start.
    #[error("the writer does not start")]
    Writer(#[from] StartError),
    /// The writer's first write failed.
    #[error("the ledger cannot be written")]
    FirstWrite(#[source] RegistrarEnd),
    /// The system gives no clock or no random bytes.
    #[error("the system does not give {what}")]
    System {
        /// What is missing.
        what: &'static str,
        /// What it said.
        #[source]
        source: std::io::Error,
    },
}

/// How a registrar ended that was not asked to.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RegistrarEnd {
    /// The disk failed, or another writer came.
    #[error(transparent)]
    Append(#[from] AppendFailure),
    /// All was written, but the end could not be noted: the next start takes longer.
    #[error("the ledger could not be closed in good order")]
    Close(#[source] std::io::Error),
    /// A mistake in the program.
    #[error("the writer's thread ended by a mistake in the program")]
    Panicked,
}

/// What came back.
pub(crate) struct Response {
    pub(crate) reply: Reply,
}

impl Response {
    /// The proof of a lease for others, where the ledger is signed.
    pub(crate) fn passport(&self, _lease: Fence) -> Option<String> {
        None
    }
}

/// A running writer, and what may be seen of its state.
pub(crate) struct Registrar {
    handle: Handle,
    view: Arc<RwLock<State>>,
    clock: Arc<dyn Clock>,
    ended: watch::Receiver<bool>,
    writer: Mutex<Option<Writer<EmbeddedLedger>>>,
}

impl Registrar {
    /// Opens the ledger, replays it, and starts to take requests. It waits for the disk.
    pub(crate) fn open(directory: &Path, options: Options) -> Result<Self, RegistrarError> {
        let ledger = EmbeddedLedger::open(directory, options)?;
        let clock: Arc<dyn Clock> =
            Arc::new(BootClock::new().map_err(|source| RegistrarError::System { what: "a clock", source })?);
        let key = hash_key()?;
        let empty = || State::new(ledger.identity().ledger.tag(), Limits::default(), key);
        let view = Arc::new(RwLock::new(replay(&ledger, empty())?));
        let empty = empty();
        let (end, ended) = watch::channel(false);
        let (first_write, first_written) = mpsc::sync_channel(1);
        let publish = {
            let (view, end) = (view.clone(), EndNote(end));
            move |events: &[Event], _: &State| {
                // Moved in, so that it is dropped with the writer's thread, however that ends.
                let _ = &end;
                show(&view, events);
                let _ = first_write.try_send(());
            }
        };
        let writer = Writer::start(ledger, empty, clock.clone(), Default::default(), Box::new(publish))?;
        // Before that the view knows no clock.
        if first_written.recv().is_err() {
            return Err(RegistrarError::FirstWrite(finish(writer).err().unwrap_or(RegistrarEnd::Panicked)));
        }
        let handle = writer.handle();
        Ok(Self { handle, view, clock, ended, writer: Mutex::new(Some(writer)) })
    }

    /// Asks, and waits for the answer, which is durable.
    pub(crate) async fn ask(&self, command: Command) -> Response {
        let (sender, receiver) = oneshot::channel();
        self.handle.ask(command, move |reply| drop(sender.send(reply)));
        // The writer answers everybody before it ends; if it could not, nobody knows.
        Response { reply: receiver.await.unwrap_or(Reply::OutcomeUnknown) }
    }

    /// Looks at what is durable. It never waits for the disk.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The time on the registrar's clock.
    pub(crate) fn now(&self) -> Tick {
        let microseconds = self.clock.microseconds();
        self.read(|state| {
            let marked = state.clock().map_or(Tick::default(), |clock| {
                let since = microseconds.saturating_sub(clock.reading.microseconds);
                Tick(clock.tick.0.saturating_add(since))
            });
            marked.max(state.now())
        })
    }

    /// Whether the writer is at its end.
    pub(crate) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Waits for the writer's end, which nobody asked for.
    pub(crate) async fn ended(&self) {
        // An error means that the sender is gone with its thread: the same.
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }

    /// Answers whoever waits, writes what is left, and closes the ledger. It waits for the disk.
    pub(crate) fn stop(&self) -> Result<(), RegistrarEnd> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        writer.map_or(Ok(()), finish)
    }
}

impl Drop for Registrar {
    /// Whoever drops it has another reason to end: the directory must be free for the next one all the same.
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

fn finish(writer: Writer<EmbeddedLedger>) -> Result<(), RegistrarEnd> {
    let stop = std::panic::AssertUnwindSafe(|| writer.stop());
    let (ledger, failure) = std::panic::catch_unwind(stop).map_err(|_| RegistrarEnd::Panicked)?;
    match failure {
        Some(failure) => Err(failure.into()),
        None => ledger.close().map_err(RegistrarEnd::Close),
    }
}

fn show(view: &RwLock<State>, events: &[Event]) {
    let mut state = view.write().unwrap_or_else(PoisonError::into_inner);
    for event in events {
        state.apply(event).expect("what the writer's state took, its copy takes");
    }
}

fn hash_key() -> Result<HashKey, RegistrarError> {
    let number = || {
        getrandom::u64().map_err(|error| RegistrarError::System {
            what: "random bytes",
            source: std::io::Error::other(error.to_string()),
        })
    };
    Ok(HashKey(number()?, number()?))
}

/// Says, when it is dropped, that the writer's thread is at its end.
struct EndNote(watch::Sender<bool>);

impl Drop for EndNote {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}
