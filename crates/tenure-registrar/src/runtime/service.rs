//! A ledger with everything that runs around it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::kernel::{HashSeed, Limits};
use tenure_ledger::signing::KeyFileError;
use tenure_ledger::{Damage, LedgerRecovery, LedgerStore, OpenError, Seq, SpaceLevel};
use thiserror::Error;

use super::clock::Clock;
use super::feed::{Feed, FeedItem};
use super::handle::Handle;
use super::key_file::load_or_create_key;
use super::maintenance::{MaintenanceOptions, MaintenanceThread};
use super::replay::{Replay, ReplayError};
use super::view::StateView;
use super::writer::{StartError, Writer, WriterConfig, WriterFailure};
use crate::pending_batch::BatchSettings;

/// How a service is set up.
#[derive(Debug, Clone, Default)]
pub struct ServiceOptions {
    pub limits: Limits,
    /// How much the writer takes on at once.
    pub settings: BatchSettings,
    /// What is done beside it, and when.
    pub maintenance: MaintenanceOptions,
    /// For the tables of the state, so that nobody can choose names that collide.
    pub hash_seed: HashSeed,
}

/// Why a service does not open.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServiceError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The key that it signs with.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The key is missing, though others are in the ledger.
    #[error("{} is missing, and the ledger was signed with it; put it back from where you copied the ledger", .0.display())]
    KeyMissing(PathBuf),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("the system gives no thread")]
    System(#[from] io::Error),
}

/// A running lease authority without a network.
pub struct RegistrarService {
    writer: Writer,
    maintenance: MaintenanceThread,
    warnings: Vec<Damage>,
}

impl RegistrarService {
    /// Opens the ledger in `store`, and starts to take requests. The key is a file in `data`.
    pub fn open(
        data: &Path,
        store: &dyn LedgerStore,
        options: ServiceOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<RegistrarService, ServiceError> {
        let ServiceOptions { limits, settings, maintenance: routine, hash_seed } = options;
        let mut recovery = store.open()?;
        let replay = replay_recovery(&mut *recovery, limits.clone(), hash_seed)?;
        let key = load_or_create_key(data, &replay)?;
        let warnings = recovery.warnings().to_vec();
        let ledger = recovery.finish()?;
        let key = Arc::new(key.finish_rotation(data)?);
        let settings = settings.with_max_batch_bytes(ledger.max_batch_bytes());
        let (maintenance, reader) = (ledger.maintenance(), ledger.reader());
        if ledger.space_level(replay.state().live_count()) < SpaceLevel::Plenty {
            // At the first start there is no reserve, and without one the first request is denied. If it cannot be
            // made, the maintenance thread tries again and says so.
            let _ = maintenance.prepare_space();
        }
        let feed = Feed::new(reader.clone());
        let config = WriterConfig { replay, key: key.clone(), clock, settings, hash_seed };
        let before = config.replay.head().seq;
        let writer = Writer::start(ledger, config, feed)?;
        wait_for_first_write(writer.feed(), before);
        let handle = writer.handle();
        match MaintenanceThread::start(maintenance, reader, routine, limits, hash_seed, key, handle) {
            Ok(maintenance) => Ok(RegistrarService { writer, maintenance, warnings }),
            Err(error) => {
                // Else its thread would go on, with the lock of the directory.
                let _ = writer.stop();
                Err(error.into())
            }
        }
    }

    pub fn handle(&self) -> Handle {
        self.writer.handle()
    }

    /// What can be read without asking.
    pub fn view(&self) -> Arc<StateView> {
        self.writer.handle().view().clone()
    }

    /// What happened, from any point on.
    pub fn feed(&self) -> Arc<Feed> {
        self.writer.feed().clone()
    }

    /// Checkpoints that are damaged and were not used. The disk should be looked at.
    pub fn warnings(&self) -> &[Damage] {
        &self.warnings
    }

    /// What could not be done beside the writer, for people; nothing if all is well.
    pub fn problem(&self) -> Option<String> {
        self.writer.problem().or_else(|| self.maintenance.problem())
    }

    /// Whether the writer has ended by itself; [`Self::stop`] says why.
    pub fn has_ended(&self) -> bool {
        self.writer.has_ended()
    }

    /// Takes no more requests, answers those that wait, and closes the ledger in good order; or says what ended the
    /// writer.
    pub fn stop(self) -> Result<(), StopError> {
        self.maintenance.stop();
        let (ledger, failure) = self.writer.stop();
        match failure {
            Some(failure) => Err(StopError::Writer(failure)),
            None => Ok(ledger.close()?),
        }
    }
}

/// What was found when a service was stopped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StopError {
    #[error(transparent)]
    Writer(#[from] WriterFailure),
    /// Everything is durable, but the mark of an orderly end could not be written.
    #[error("the ledger could not be closed in good order; the next start takes a little longer")]
    Close(#[from] io::Error),
}

/// Adds up what is being opened.
pub(crate) fn replay_recovery(
    recovery: &mut dyn LedgerRecovery,
    limits: Limits,
    hash_seed: HashSeed,
) -> Result<Replay, ServiceError> {
    let ledger = recovery.ledger();
    let mut replay = Replay::begin(recovery.take_checkpoint().as_ref(), ledger, limits, hash_seed)?;
    while let Some(batch) = recovery.next_batch()? {
        replay.apply(&batch)?;
    }
    Ok(replay)
}

/// Before its first write a writer answers nobody, and the view knows no clock. A disk that is slow or full is waited
/// for no longer than this: then whoever asks is told.
fn wait_for_first_write(feed: &Arc<Feed>, before: Seq) {
    let mut subscription = feed.subscribe(before);
    // The first may be the entry about the key.
    while let FeedItem::Batch(batch) = subscription.next(Duration::from_secs(10)) {
        if batch.records.iter().any(|record| record.event_type == "clock.resumed") {
            break;
        }
    }
}
