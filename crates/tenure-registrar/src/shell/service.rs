//! A ledger in a directory, with everything that runs around it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenure_core::kernel::{HashKey, Limits, State};
use tenure_ledger::EmbeddedLedger;
use tenure_ledger::embedded::{Damage, OpenError, Opening, Options};
use tenure_ledger::signing::{KeyFileError, NodeKey};
use thiserror::Error;

use super::clock::Clock;
use super::feed::Feed;
use super::housekeeper::{Housekeeper, Routine};
use super::replay::{Replay, ReplayError};
use super::view::View;
use super::writer::{Handle, Office, StartError, Writer, WriterFailure};
use crate::settings::Settings;

/// How a service is set up.
#[derive(Debug, Clone, Default)]
pub struct ServiceOptions {
    /// How the ledger is kept.
    pub ledger: Options,
    /// What is permitted.
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
    /// The ledger.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What it adds up to.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The key that it signs with.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The key is missing, though others are in the ledger.
    #[error("{} is missing, and the ledger was signed with it; put it back from where you copied the ledger", .0.display())]
    KeyMissing(PathBuf),
    /// The writer.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The system gives no thread.
    #[error("the system gives no thread")]
    System(#[from] io::Error),
}

/// A running lease authority without a network.
pub struct Service {
    writer: Writer<EmbeddedLedger>,
    housekeeper: Housekeeper,
    warnings: Vec<Damage>,
}

/// The file of the node's key in a data directory.
pub fn key_file(data: &Path) -> PathBuf {
    data.join("node.key")
}

impl Service {
    /// Opens the ledger in `data`, which is made if it is not there, and starts to take requests.
    pub fn open(
        data: &Path,
        options: ServiceOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Service, ServiceError> {
        let ServiceOptions { ledger, limits, settings, routine, hash_key } = options;
        let mut opening = Opening::begin(data, ledger)?;
        let replay = replay_opening(&mut opening, limits.clone(), hash_key)?;
        let key = Arc::new(node_key(data, &replay)?);
        let warnings = opening.warnings().to_vec();
        let ledger = opening.finish()?;
        let upkeep = ledger.upkeep();
        let feed = Feed::new(replay.head(), Some(ledger.reader()));
        let office = Office { replay, key: key.clone(), clock, settings, hash_key };
        let writer = Writer::start(ledger, office, feed)?;
        let housekeeper = Housekeeper::start(upkeep, routine, limits, hash_key, key, writer.handle())?;
        Ok(Service { writer, housekeeper, warnings })
    }

    /// Where requests go in.
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
        self.housekeeper.trouble()
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
    /// The writer had ended before.
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
    let mut replay = match opening.take_checkpoint() {
        Some(checkpoint) => Replay::resume(&checkpoint, limits, hash_key)?,
        None => Replay::new(ledger, State::new(ledger.tag(), limits, hash_key)),
    };
    while let Some(batch) = opening.next_batch()? {
        replay.apply(&batch)?;
    }
    Ok(replay)
}

/// The key of this node: made at the first start, and never again.
fn node_key(data: &Path, replay: &Replay) -> Result<NodeKey, ServiceError> {
    let path = key_file(data);
    if path.exists() {
        return Ok(NodeKey::load(&path)?);
    }
    if replay.keyring().first().is_some() {
        return Err(ServiceError::KeyMissing(path));
    }
    Ok(NodeKey::create(&path)?)
}
