//! A ledger in a directory, with everything that runs around it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::kernel::{HashKey, Limits};
use tenure_ledger::embedded::{Damage, OpenError, Opening, Options};
use tenure_ledger::signing::KeyFileError;
use tenure_ledger::{EmbeddedLedger, Seq};
use thiserror::Error;

use super::clock::Clock;
use super::feed::{Feed, Next};
use super::handle::Handle;
use super::housekeeper::{Housekeeper, Routine};
use super::key_file::node_key;
use super::replay::{Replay, ReplayError};
use super::view::View;
use super::writer::{Office, StartError, Writer, WriterFailure};
use crate::settings::Settings;

/// How a service is set up.
#[derive(Debug, Clone, Default)]
pub struct ServiceOptions {
    pub ledger: Options,
    pub limits: Limits,
    /// How much the writer takes on at once.
    pub settings: Settings,
    /// What is done beside it, and when.
    pub routine: Routine,
    /// For the tables of the state, so that nobody can choose names that collide.
    pub hash_key: HashKey,
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
pub struct Service {
    writer: Writer<EmbeddedLedger>,
    housekeeper: Housekeeper,
    warnings: Vec<Damage>,
}

impl Service {
    /// Opens the ledger in `data`, which is made if it is not there, and starts to take requests.
    pub fn open(
        data: &Path,
        options: ServiceOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Service, ServiceError> {
        let ServiceOptions { ledger, limits, settings, routine, hash_key } = options;
        let settings = settings.for_segments_of(ledger.segment_size);
        let mut opening = Opening::begin(data, ledger)?;
        let replay = replay_opening(&mut opening, limits.clone(), hash_key)?;
        let key = node_key(data, &replay)?;
        let warnings = opening.warnings().to_vec();
        let ledger = opening.finish()?;
        let key = Arc::new(key.settle(data)?);
        let upkeep = ledger.upkeep();
        let feed = Feed::new(replay.head(), Some(ledger.reader()));
        let office = Office { replay, key: key.clone(), clock, settings, hash_key };
        let before = office.replay.head().seq;
        let writer = Writer::start(ledger, office, feed)?;
        wait_for_first_write(writer.feed(), before);
        match Housekeeper::start(upkeep, routine, limits, hash_key, key, writer.handle()) {
            Ok(housekeeper) => Ok(Service { writer, housekeeper, warnings }),
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
    pub fn view(&self) -> Arc<View> {
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
    pub fn trouble(&self) -> Option<String> {
        self.writer.trouble().or_else(|| self.housekeeper.trouble())
    }

    /// Whether the writer has ended by itself; [`Self::stop`] says why.
    pub fn has_ended(&self) -> bool {
        self.writer.has_ended()
    }

    /// Takes no more requests, answers those that wait, and closes the ledger in good order; or says what ended the
    /// writer.
    pub fn stop(self) -> Result<(), StopError> {
        self.housekeeper.stop();
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
pub(crate) fn replay_opening(
    opening: &mut Opening,
    limits: Limits,
    hash_key: HashKey,
) -> Result<Replay, ServiceError> {
    let ledger = opening.identity().ledger;
    let mut replay = Replay::begin(opening.take_checkpoint().as_ref(), ledger, limits, hash_key)?;
    while let Some(batch) = opening.next_batch()? {
        replay.apply(&batch)?;
    }
    Ok(replay)
}

/// Before its first write a writer answers nobody, and the view knows no clock. A disk that is slow or full is waited
/// for no longer than this: then whoever asks is told.
fn wait_for_first_write(feed: &Arc<Feed>, before: Seq) {
    let mut subscription = feed.subscribe(before);
    // The first may be the entry about the key.
    while let Next::Batch(batch) = subscription.next(Duration::from_secs(10)) {
        if batch.records.iter().any(|record| record.event_type == "clock.resumed") {
            break;
        }
    }
}
