//! A copy of a ledger that may be in use, for when the original is lost.

use std::path::Path;
use std::{fs, thread};

use super::directory_disk::DirectoryDisk;
use super::disk::Disk;
use super::identity::{LedgerIdentity, NO_MACHINE};
use super::segment::Segment;
use super::store::EmbeddedStore;
use crate::error::{CopyError, OpenError};
use crate::read_only::{VerificationReport, verify};

/// A writer may be at work: what looks damaged may be half written, and is read again.
const TRIES: usize = 20;

impl EmbeddedStore {
    /// Copies the ledger, with the keys beside it, to the new directory `to`, and checks every bit of the copy.
    ///
    /// The copy says of itself that it is one: it cannot be opened until `tenure ledger restored` puts it in the place
    /// of the original. Whoever has it can sign and act as the original: keep it as safe.
    pub fn copy_to(&self, to: &Path) -> Result<VerificationReport, CopyError> {
        let source = DirectoryDisk::at(&self.directory);
        let missing = || OpenError::NoLedger(self.directory.clone());
        let identity = LedgerIdentity::read(&source)?.ok_or_else(missing)?;
        if fs::symlink_metadata(to).is_ok() {
            return Err(CopyError::Exists(to.to_owned()));
        }
        let copied = copy_files(&source, to, identity);
        if copied.is_err() {
            // Half a copy is of no use, and in the way of the next try.
            let _ = fs::remove_dir_all(to);
        }
        copied
    }
}

fn copy_files(
    source: &dyn Disk,
    to: &Path,
    identity: LedgerIdentity,
) -> Result<VerificationReport, CopyError> {
    let target = DirectoryDisk::open_or_create(to)?;
    let mut names = source.list()?;
    // Segments before checkpoints: a checkpoint must not be ahead of its ledger.
    names.sort_by_key(|name| (!is_segment(name), name.clone()));
    for name in names.iter().filter(|name| is_kept(name)) {
        let Some(bytes) = read_whole(source, name)? else { continue };
        let file = target.create(name)?;
        file.write_at(&bytes, 0)?;
        file.sync()?;
    }
    target.sync()?;
    // Last of all: what has no identity cannot be used, so half a copy is never taken for a whole one.
    LedgerIdentity { machine: NO_MACHINE, ..identity }.write(&target)?;
    Ok(verify(to)?)
}

/// Blank files, locks and drafts are made anew; the identity is the copy's own.
fn is_kept(name: &str) -> bool {
    let is_made_anew = ["lock", "clean", "spare", "taken", "larger", "identity"].contains(&name);
    !is_made_anew && !name.starts_with("reserve-") && !name.ends_with(".new")
}

fn is_segment(name: &str) -> bool {
    Segment::parse_file_name(name).is_some()
}

/// The bytes of a file; of a segment, as far as it is whole, with zeros behind that. Nothing if it is gone.
fn read_whole(source: &dyn Disk, name: &str) -> Result<Option<Vec<u8>>, CopyError> {
    if !is_segment(name) {
        return Ok(source.read(name)?);
    }
    let mut tries = 0;
    loop {
        let Some(mut bytes) = source.read(name)? else { return Ok(None) };
        tries += 1;
        match Segment::read(&source.path(name), &bytes) {
            Ok(segment) => {
                let end = usize::try_from(segment.end).unwrap_or(usize::MAX).min(bytes.len());
                bytes[end..].fill(0);
                return Ok(Some(bytes));
            }
            Err(damage) if tries >= TRIES => return Err(OpenError::from(damage).into()),
            Err(_) => thread::yield_now(),
        }
    }
}
