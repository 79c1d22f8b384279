//! Reads and replays a whole ledger beside its writer: what `tenure verify` does.

use std::path::{Path, PathBuf};

use tenure_core::kernel::{HashSeed, Limits};
use tenure_ledger::signing::Keyring;
use tenure_ledger::{OpenError, ReadOnlyLedger, Seq, VerificationReport, open_read_only};
use thiserror::Error;

use super::replay::{Replay, ReplayError};

/// How often to begin again when files go away meanwhile.
const MAX_TRIES: usize = 3;

/// What was found in a ledger that is whole.
#[derive(Debug, Clone)]
pub struct LedgerVerification {
    pub report: VerificationReport,
    /// Its keys, those that are retired among them.
    pub keyring: Keyring,
    /// After which event all was added up and every signature checked. What is before that is vouched for by the
    /// signature of the checkpoint there.
    pub verified_after: Seq,
}

/// What is wrong with a ledger. Nothing was changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LedgerVerificationError {
    /// It cannot be read, or its bytes are not what was written.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Its bytes are in order, but they are not what a registrar with the key would have written.
    #[error("{} is damaged at byte {offset}, in the record after event {}", file.display(), after.0)]
    Record {
        file: PathBuf,
        /// At which byte the record begins.
        offset: u64,
        after: Seq,
        source: ReplayError,
    },
    /// The state in the oldest checkpoint cannot be gone on from.
    #[error(transparent)]
    Checkpoint(#[from] ReplayError),
}

/// Where to begin to add up the events in an archive.
pub fn start_replay(archive: &dyn ReadOnlyLedger) -> Result<Replay, ReplayError> {
    Replay::begin(archive.oldest_checkpoint(), archive.ledger(), Limits::default(), HashSeed::default())
}

/// Checks every bit of the ledger in `directory`, adds up every event, and checks every signature. `progress` is told
/// how many segments were read, and how many there are.
pub fn verify_ledger_directory(
    directory: &Path,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<LedgerVerification, LedgerVerificationError> {
    let mut tries = 1;
    loop {
        match open_read_only(directory)
            .map_err(LedgerVerificationError::from)
            .and_then(|archive| verify_ledger(&*archive.tolerate_active_writer(), progress))
        {
            Err(LedgerVerificationError::Open(error)) if error.is_transient() && tries < MAX_TRIES => {
                tries += 1
            }
            done => return done,
        }
    }
}

/// The same for an archive that is open, once.
pub fn verify_ledger(
    archive: &dyn ReadOnlyLedger,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<LedgerVerification, LedgerVerificationError> {
    let mut replay = start_replay(archive)?.with_signature_checks();
    let added_up_after = replay.head().seq;
    let mut batches = archive.batches();
    while let Some(placed) = batches.next_batch()? {
        let (done, total) = batches.progress();
        progress(done, total);
        if placed.batch.last() <= added_up_after {
            continue;
        }
        let after = Seq(placed.batch.first.0 - 1);
        let wrong = |source| LedgerVerificationError::Record {
            file: placed.file.clone(),
            offset: placed.offset,
            after,
            source,
        };
        replay.apply(&placed.batch).map_err(wrong)?;
    }
    let report = batches.finish()?;
    Ok(LedgerVerification { report, keyring: replay.keyring().clone(), verified_after: added_up_after })
}
