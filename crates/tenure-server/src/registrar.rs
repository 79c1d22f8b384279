//! The writer, for async callers. Only this file and its folder know the registrar's shell.

mod errands;
pub(crate) mod line;
mod orphans;

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tenure_core::kernel::{Command, Fence, HashKey, Limits, State, Tick};
use tenure_ledger::embedded::Options;
use tenure_registrar::Reply;
use tenure_registrar::shell::{
    BootClock, Feed, Handle, Response, Routine, Service, ServiceError, ServiceOptions,
    StopError as ServiceEnd, View,
};
use thiserror::Error;
use tokio::runtime;
use tokio::sync::{oneshot, watch};

use self::errands::Errands;
pub(crate) use self::errands::Undelivered;
pub(crate) use self::line::{Asked, Given, Line, Waited};
use self::orphans::Orphans;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RegistrarError {
    /// The ledger does not open, or does not add up.
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error("the ledger can be read, but not written; look at the disk")]
    FirstWrite(#[source] Option<RegistrarEnd>),
    /// The system gives no clock or no random bytes.
    #[error("the system does not give {what}")]
    System {
        what: &'static str,
        #[source]
        source: std::io::Error,
    },
}

/// How a registrar ended that was not asked to, or not in good order.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RegistrarEnd {
    /// The disk failed, or another writer came.
    #[error(transparent)]
    Service(#[from] ServiceEnd),
    #[error("the writer's thread ended by a mistake in the program")]
    Panicked,
}

/// A running writer, and what may be seen of its state.
pub(crate) struct Registrar {
    handle: Handle,
    feed: Arc<Feed>,
    ended: watch::Receiver<bool>,
    errands: Errands,
    orphans: Arc<Orphans>,
    service: Mutex<Option<Service>>,
}

impl Registrar {
    /// Opens the ledger, replays it, and starts to take requests. It waits for the disk, on a thread of a runtime.
    pub(crate) fn open(
        directory: &Path,
        ledger: Options,
        routine: Routine,
        limits: Limits,
    ) -> Result<Self, RegistrarError> {
        let clock = BootClock::new().map_err(|source| RegistrarError::System { what: "a clock", source })?;
        let options =
            ServiceOptions { ledger, routine, limits, hash_key: hash_key()?, ..ServiceOptions::default() };
        let service = Service::open(directory, options, Arc::new(clock))?;
        let (end, ended) = watch::channel(false);
        service.feed().at_end(move || {
            end.send_replace(true);
        });
        let (handle, feed, runtime) = (service.handle(), service.feed(), runtime::Handle::current());
        let mut registrar = Self {
            errands: Errands::new(handle.clone(), runtime.clone(), ended.clone()),
            handle,
            feed,
            ended,
            orphans: Arc::default(),
            service: Mutex::new(Some(service)),
        };
        // Nobody is answered before the start itself is durable; whoever is, can be.
        match registrar.handle.ask_and_wait(Command::Expire { most: 1 }).reply {
            Reply::Answered { .. } => {}
            _ => return Err(RegistrarError::FirstWrite(registrar.stop().err())),
        }
        registrar.orphans = Orphans::open(&registrar.handle, &registrar.errands);
        runtime.spawn(registrar.orphans.clone().expire(registrar.errands.clone()));
        Ok(registrar)
    }

    /// Asks, and waits for the answer, which is durable.
    pub(crate) async fn ask(&self, command: Command) -> Response {
        let (sender, receiver) = oneshot::channel();
        self.handle.ask(command, move |response| drop(sender.send(response)));
        // The writer answers everybody before it ends; if it could not, nobody knows.
        receiver.await.unwrap_or_else(|_| Reply::OutcomeUnknown.into())
    }

    /// Sees to it that this is done, though nobody waits for it.
    pub(crate) fn see_to(&self, command: Command) {
        self.errands.run(command);
    }

    /// The proof of a lease for others. Not from within [`Self::read`]: it looks by itself.
    pub(crate) fn passport(&self, response: &Response, lease: Fence) -> Option<String> {
        self.handle.passport(response, lease).map(|passport| passport.to_text())
    }

    /// Looks at what is durable. It never waits for the disk.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.handle.view().read(look)
    }

    /// What happened, from any point on.
    pub(crate) fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    /// What is durable, for those who look for themselves.
    pub(crate) fn view(&self) -> &Arc<View> {
        self.handle.view()
    }

    /// How many requests wait to be decided.
    pub(crate) fn inbox_depth(&self) -> usize {
        self.handle.inbox_depth()
    }

    /// The time on the registrar's clock.
    pub(crate) fn now(&self) -> Tick {
        self.handle.view().now()
    }

    /// Whether the writer is at its end.
    pub(crate) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// What went wrong beside the writer.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let service = self.service.lock();
        let Some(service) = &*service else { return Vec::new() };
        let damaged = service.warnings().iter().map(|damage| format!("a checkpoint was not used: {damage}"));
        damaged.chain(service.trouble()).collect()
    }

    pub(crate) async fn ended(&self) {
        // An error means that the writer's thread is gone: the same.
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }

    /// Answers whoever waits, writes what is left, and closes the ledger. It waits for the disk.
    pub(crate) fn stop(&self) -> Result<(), RegistrarEnd> {
        let service = self.service.lock().take();
        let Some(service) = service else { return Ok(()) };
        let stop = std::panic::AssertUnwindSafe(|| service.stop());
        Ok(std::panic::catch_unwind(stop).map_err(|_| RegistrarEnd::Panicked)??)
    }
}

impl Drop for Registrar {
    /// Whoever drops it has another reason to end: the directory must be free for the next one all the same.
    fn drop(&mut self) {
        let _ = self.stop();
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
