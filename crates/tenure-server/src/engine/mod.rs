//! The registrar, for async callers: only this folder knows its `Handle`.

pub(crate) mod acquire;
mod recovered_tickets;
mod retry_queue;

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tenure_core::kernel::{Command, Fence, HashSeed, KernelState, Limits, Tick};
use tenure_ledger::LedgerStore;
use tenure_registrar::Reply;
use tenure_registrar::runtime::{
    BootClock, Feed, Handle, MaintenanceOptions, RegistrarService, Response, ServiceError, ServiceOptions,
    StateView, StopError as ServiceEnd,
};
use thiserror::Error;
use tokio::runtime;
use tokio::sync::{oneshot, watch};

pub(crate) use self::acquire::{AcquireOutcome, PendingGrant, QueueOutcome, QueuedRequest};
use self::recovered_tickets::RecoveredTickets;
use self::retry_queue::RetryQueue;
pub(crate) use self::retry_queue::RevokeOnDrop;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RegistrarError {
    /// The ledger does not open, or does not add up.
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error("the ledger can be read, but not written; look at the disk")]
    FirstWrite(#[source] Option<RegistrarShutdownError>),
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
pub enum RegistrarShutdownError {
    /// The disk failed, or another writer came.
    #[error(transparent)]
    Service(#[from] ServiceEnd),
    #[error("the writer's thread ended by a mistake in the program")]
    Panicked,
}

/// A running writer, and what may be seen of its state.
pub(crate) struct RegistrarHandle {
    handle: Handle,
    feed: Arc<Feed>,
    ended: watch::Receiver<bool>,
    retry_queue: RetryQueue,
    recovered_tickets: Arc<RecoveredTickets>,
    service: Mutex<Option<RegistrarService>>,
}

impl RegistrarHandle {
    /// Opens the ledger, replays it, and starts to take requests. The key is in `directory`. It waits for the disk, on a
    /// thread of a runtime.
    pub(crate) fn open(
        directory: &Path,
        ledger: &dyn LedgerStore,
        routine: MaintenanceOptions,
        limits: Limits,
    ) -> Result<Self, RegistrarError> {
        let clock = BootClock::new().map_err(|source| RegistrarError::System { what: "a clock", source })?;
        let hash_seed = hash_seed()?;
        let options = ServiceOptions { maintenance: routine, limits, hash_seed, ..ServiceOptions::default() };
        let service = RegistrarService::open(directory, ledger, options, Arc::new(clock))?;
        let (end, ended) = watch::channel(false);
        service.feed().on_end(move || {
            end.send_replace(true);
        });
        let (handle, feed, runtime) = (service.handle(), service.feed(), runtime::Handle::current());
        let mut registrar = Self {
            retry_queue: RetryQueue::new(handle.clone(), runtime.clone(), ended.clone()),
            handle,
            feed,
            ended,
            recovered_tickets: Arc::default(),
            service: Mutex::new(Some(service)),
        };
        // Nobody is answered before the start itself is durable; whoever is, can be.
        match registrar.handle.submit_and_wait(Command::Expire { max_ended: 1 }).reply {
            Reply::Answered { .. } => {}
            _ => return Err(RegistrarError::FirstWrite(registrar.stop().err())),
        }
        registrar.recovered_tickets = RecoveredTickets::open(&registrar.handle, &registrar.retry_queue);
        runtime.spawn(registrar.recovered_tickets.clone().withdraw_unclaimed(registrar.retry_queue.clone()));
        Ok(registrar)
    }

    /// Asks, and waits for the answer, which is durable.
    pub(crate) async fn submit(&self, command: Command) -> Response {
        let (sender, receiver) = oneshot::channel();
        self.handle.submit(command, move |response| drop(sender.send(response)));
        // The writer answers everybody before it ends; if it could not, nobody knows.
        receiver.await.unwrap_or_else(|_| Reply::OutcomeUnknown.into())
    }

    /// Sees to it that this is done, though nobody waits for it.
    pub(crate) fn submit_with_retry(&self, command: Command) {
        self.retry_queue.submit(command);
    }

    /// The proof of a lease for others. Not from within [`Self::read`]: it looks by itself.
    pub(crate) fn passport(&self, response: &Response, lease: Fence) -> Option<String> {
        self.handle.passport(response, lease).map(|passport| passport.to_text())
    }

    /// Looks at what is durable. It never waits for the disk.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&KernelState) -> T) -> T {
        self.handle.view().read(look)
    }

    /// What happened, from any point on.
    pub(crate) fn event_feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    /// What is durable, for those who look for themselves.
    pub(crate) fn view(&self) -> &Arc<StateView> {
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
    pub(crate) fn warnings(&self) -> Vec<String> {
        let service = self.service.lock();
        let Some(service) = &*service else { return Vec::new() };
        let damaged = service.warnings().iter().map(|damage| format!("a checkpoint was not used: {damage}"));
        damaged.chain(service.problem()).collect()
    }

    pub(crate) async fn wait_until_ended(&self) {
        // An error means that the writer's thread is gone: the same.
        let _ = self.ended.clone().wait_for(|ended| *ended).await;
    }

    /// Answers whoever waits, writes what is left, and closes the ledger. It waits for the disk.
    pub(crate) fn stop(&self) -> Result<(), RegistrarShutdownError> {
        let service = self.service.lock().take();
        let Some(service) = service else { return Ok(()) };
        let stop = std::panic::AssertUnwindSafe(|| service.stop());
        Ok(std::panic::catch_unwind(stop).map_err(|_| RegistrarShutdownError::Panicked)??)
    }
}

impl Drop for RegistrarHandle {
    /// Whoever drops it has another reason to end: the directory must be free for the next one all the same.
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

pub(crate) fn hash_seed() -> Result<HashSeed, RegistrarError> {
    let number = || {
        getrandom::u64().map_err(|error| RegistrarError::System {
            what: "random bytes",
            source: std::io::Error::other(error.to_string()),
        })
    };
    Ok(HashSeed(number()?, number()?))
}
