//! Starts the writer's thread and stops it.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use tenure_core::kernel::HashSeed;
use tenure_ledger::signing::{KeyAdded, KeyEntry, KeyId, Keyring, LedgerSigningKey};
use tenure_ledger::{AppendError, Batch, Ledger, Seq};
use thiserror::Error;

use super::appender::{AppendThread, Appender};
use super::clock::Clock;
use super::feed::Feed;
use super::handle::Handle;
use super::inbox::{Inbox, InboxBatch};
use super::pending_replies::{PendingReplies, WaitListeners};
use super::publisher::{Publisher, Subscribers};
use super::replay::{Replay, ReplayError};
use super::view::{BackgroundHealth, StateView};
use super::writer_loop::{RejectOnDrop, WriterLoop, start_registrar};
use crate::pending_batch::BatchSettings;
use crate::registrar::{AppendFailure, StartFailure};

/// Why a writer does not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The ledger does not add up to a state.
    #[error(transparent)]
    Replay(#[from] ReplayError),
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

pub struct Writer {
    handle: Handle,
    feed: Arc<Feed>,
    health: Arc<BackgroundHealth>,
    thread: JoinHandle<(Box<dyn Ledger>, Option<WriterFailure>)>,
}

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriterFailure {
    /// The ledger: nothing more can be written by this process.
    #[error("the ledger failed: {failure}")]
    Append {
        /// What became of the last write.
        failure: AppendFailure,
        #[source]
        source: Option<AppendError>,
    },
    /// It went on after an error, and the ledger does not add up any more.
    #[error("the ledger cannot be gone on with")]
    Start(#[from] StartError),
}

/// What a writer needs beside its ledger.
pub struct WriterConfig {
    /// What the ledger adds up to.
    pub replay: Replay,
    pub key: Arc<LedgerSigningKey>,
    pub clock: Arc<dyn Clock>,
    /// How much it takes on at once.
    pub settings: BatchSettings,
    /// For the tables of the state, so that nobody can choose names that collide.
    pub hash_seed: HashSeed,
}

impl Writer {
    /// Starts to take requests. `feed` is told everything; [`super::RegistrarService`] has the work beside the writer.
    pub fn start(
        mut ledger: Box<dyn Ledger>,
        mut config: WriterConfig,
        feed: Feed,
    ) -> Result<Self, StartError> {
        register_key(&mut *ledger, &mut config.replay, &config.key)?;
        let WriterConfig { replay, key, clock, settings, hash_seed } = config;
        let id = replay.ledger();
        let feed = Arc::new(feed);
        let inbox = Arc::new(Inbox::new()?);
        let (state, durable) = (replay.state().clone(), replay.into_state());
        let (registrar, effects, stamper) = start_registrar(id, state, &*clock, settings)?;
        let view = Arc::new(StateView::new(durable, stamper, clock.clone()));
        let waiters = Arc::new(WaitListeners::default());
        let handle = Handle {
            inbox: inbox.clone(),
            clock: clock.clone(),
            max_waiting: settings.max_waiting,
            ledger: id,
            key: key.clone(),
            view: view.clone(),
            waiters: waiters.clone(),
        };
        let health = Arc::new(BackgroundHealth::default());
        let publisher =
            Publisher::start(Subscribers { ledger: id, view, feed: feed.clone(), waiters: waiters.clone() })?;
        let run = WriterLoop {
            appender: Some(Appender { ledger, id, key }),
            append_thread: AppendThread::start()?,
            registrar,
            inbox: inbox.clone(),
            pending: InboxBatch::default(),
            clock,
            settings,
            hash_seed,
            publisher,
            pending_replies: PendingReplies::default(),
            unpublished: None,
            error: None,
            health: health.clone(),
        };
        let end = RejectOnDrop(inbox, feed.clone(), waiters);
        let run = move || {
            // However this ends, by a panic too, nobody is left waiting for somebody who is not there. It comes last:
            // whatever is durable is told before the end is.
            let _end = end;
            run.run(effects)
        };
        let thread = std::thread::Builder::new().name("tenure-writer".into());
        Ok(Self { handle, feed, health, thread: thread.spawn(run)? })
    }

    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// What happened, from any point on.
    pub fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    /// Why nothing can be written at the moment, for people; nothing if all is well.
    pub fn problem(&self) -> Option<String> {
        self.health.get()
    }

    /// Whether the writer has ended by itself.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Takes no more requests, answers those that wait, and gives the ledger back: in good order, or with what
    /// ended the writer.
    pub fn stop(self) -> (Box<dyn Ledger>, Option<WriterFailure>) {
        self.handle.inbox.close();
        match self.thread.join() {
            Ok(end) => end,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// The first batch of a ledger says with which key it is signed.
fn register_key(
    ledger: &mut dyn Ledger,
    replay: &mut Replay,
    key: &LedgerSigningKey,
) -> Result<(), StartError> {
    let keyring: &Keyring = replay.keyring();
    if keyring.active_keys().any(|live| live == key.public_key()) {
        return Ok(());
    }
    if keyring.first().is_some() {
        return Err(StartError::ForeignKey(key.id()));
    }
    let added = KeyEntry::Added(KeyAdded::new(replay.ledger(), key.public_key(), key));
    let (first, records) = (Seq(ledger.head().seq.0 + 1), vec![added.to_record()]);
    let head = ledger.append(ledger.head().seq, &records, &[])?;
    replay.apply(&Batch { first, records, signature: Vec::new(), hash: head.hash })?;
    Ok(())
}
