//! `tenure passport`.

mod key;
mod verify;

use std::path::Path;

use clap::{Args, Subcommand};
use tenure_ledger::signing::{KeyEntry, Keyring};
use tenure_ledger::{Batch, Seq, open_read_only};
use tenure_registrar::runtime::ReplayError;

use crate::failure::Failure;

/// Checks a lease's passport, anywhere and without a server.
///
/// A passport is what a holder shows to others: the terms of its lease, signed by the registrar.
#[derive(Debug, Args)]
pub struct Passport {
    #[command(subcommand)]
    command: PassportCommand,
}

#[derive(Debug, Subcommand)]
enum PassportCommand {
    Verify(verify::Verify),
    Key(key::Key),
}

impl Passport {
    /// Runs the command to its end.
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            PassportCommand::Verify(verify) => verify.run(),
            PassportCommand::Key(key) => key.run(),
        }
    }
}

/// The keys of the ledger in `data`, as its own entries say.
fn keyring_of(data: &Path) -> Result<Keyring, Failure> {
    let archive = open_read_only(data)?.tolerate_active_writer();
    let mut keyring = Keyring::new(archive.ledger());
    let mut after = Seq(0);
    if let Some(checkpoint) = archive.oldest_checkpoint() {
        let at = checkpoint.header.head.seq;
        keyring = checkpoint.verify().map_err(|reason| ReplayError::Checkpoint { at, reason })?;
        after = at;
    }
    let mut batches = archive.batches();
    while let Some(placed) = batches.next_batch()? {
        if placed.batch.last() > after {
            add_keys(&mut keyring, &placed.batch)?;
        }
    }
    Ok(keyring)
}

fn add_keys(keyring: &mut Keyring, batch: &Batch) -> Result<(), ReplayError> {
    for (seq, record) in (batch.first.0..).zip(&batch.records) {
        let at = Seq(seq);
        let entry = KeyEntry::from_record(record).map_err(|source| ReplayError::KeyEntry { at, source })?;
        if let Some(entry) = entry {
            keyring.apply(seq, &entry).map_err(|source| ReplayError::Keyring { at, source })?;
        }
    }
    Ok(())
}
