//! `tenure ledger`.

pub mod log;
pub mod passport;
pub mod replay;
pub mod verify;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;
use tenure_core::kernel::{Fence, Limits};
use tenure_registrar::runtime::{
    BootClock, Clock as _, RestoreFailure, RestoreOptions, RestoreReport, ServiceError, restore,
};

use crate::config::{Configuration, LedgerLocation};
use crate::exit;
use crate::failure::Failure;
use crate::output::{Format, format_duration, format_wall_time, write_json, write_text};

/// Copies a ledger, moves it to another machine, and puts a copy in the place of a lost original.
#[derive(Debug, Args)]
pub struct Ledger {
    #[command(subcommand)]
    command: LedgerCommand,
}

#[derive(Debug, Subcommand)]
enum LedgerCommand {
    Copy(CopyArguments),
    Moved(MovedArguments),
    Restored(RestoredArguments),
}

impl Ledger {
    /// Runs the command to its end.
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            LedgerCommand::Copy(copy) => copy.run(),
            LedgerCommand::Moved(moved) => moved.run(),
            LedgerCommand::Restored(restored) => restored.run(),
        }
    }
}

/// Says that a ledger was moved to this machine, and is no longer used where it was.
///
/// For a data directory that was moved as it was, with nothing served from it since. If the old machine went on
/// serving after the directory was copied, this is the wrong command, and leases could be granted twice: use `tenure
/// ledger restored`.
///
/// Example: tenure ledger moved --data /var/lib/tenure
#[derive(Debug, Args)]
pub struct MovedArguments {
    #[command(flatten)]
    location: LedgerLocation,
    #[command(flatten)]
    format: Format,
}

impl MovedArguments {
    /// Makes it this machine's.
    pub fn run(self) -> Result<(), Failure> {
        let store = Configuration::ledger_in(self.location.existing_directory()?);
        let was_elsewhere = store.accept_move()?;
        let ledger = store.ledger_id()?;
        if self.format.json {
            write_json(&json!({ "ledger": ledger.to_string(), "moved": was_elsewhere }))?;
        } else if was_elsewhere {
            write_text(&format!(
                "Ledger {ledger} belongs to this machine now. All leases go on, with their numbers and keys.\n\
                 Never start it on the old machine again: remove what is left of it there. Then: tenure serve\n"
            ))?;
        } else {
            write_text(&format!("Ledger {ledger} belongs to this machine already; nothing was changed.\n"))?;
        }
        Ok(())
    }
}

/// Copies a ledger, with the keys beside it, to a new directory, for when the original is lost.
///
/// The ledger may be in use. Every bit of the copy is checked. A copy cannot be served as it is, so that it is never
/// taken for the original: `tenure ledger restored` puts it in the original's place.
///
/// Example: tenure ledger copy --to /backup/tenure-monday
#[derive(Debug, Args)]
pub struct CopyArguments {
    /// Where to: a directory that does not exist yet
    #[arg(long, value_name = "DIRECTORY")]
    to: PathBuf,
    #[command(flatten)]
    location: LedgerLocation,
    #[command(flatten)]
    format: Format,
}

impl CopyArguments {
    /// Copies, and says what the copy holds.
    pub fn run(self) -> Result<(), Failure> {
        let store = Configuration::ledger_in(self.location.existing_directory()?);
        let report = store.copy_to(&self.to)?;
        let (ledger, to) = (report.ledger, self.to.display());
        let (first, last, head) = (report.after.0 + 1, report.head.seq.0, report.head.hash);
        let result = json!({
            "ledger": ledger.to_string(),
            "epoch": report.epoch,
            "to": to.to_string(),
            "firstSeq": first,
            "lastSeq": last,
            "headHash": head.to_string(),
        });
        self.format.print(&result, |_| {
            format!(
                "Copied ledger {ledger}, events {first} to {last}, to {to}, and checked every bit of the copy.\n\
                 It holds the secret keys too: keep it as safe as the original.\n\
                 If the original is ever lost, put the copy in its place and run `tenure ledger restored`.\n"
            )
        })
    }
}

/// Puts a copy of a ledger in the place of its original, which is lost.
///
/// What the original did after the copy was made is unknown. So a new epoch begins, with a new key; no number that the
/// original may have given out is used again; and nothing is granted until whatever it granted is over. The original
/// must never be started again.
///
/// Example: tenure ledger restored --data /var/lib/tenure
#[derive(Debug, Args)]
pub struct RestoredArguments {
    #[command(flatten)]
    location: LedgerLocation,
    /// Nobody holds anything any more: end what the copy says is held, and grant at once
    #[arg(long = "nobody-holds")]
    no_holders: bool,
    /// A fence that the original is known to have given out: go on after it
    #[arg(long, value_name = "FENCE", value_parser = clap::value_parser!(u64).range(..=Fence::MAX.0))]
    above: Option<u64>,
    #[command(flatten)]
    format: Format,
}

impl RestoredArguments {
    /// Restores, and says what that means.
    pub fn run(self) -> Result<(), Failure> {
        let Configuration { data, ledger, .. } = self.location.existing_configuration()?;
        // Where there is no ledger, not even a lock is left behind.
        ledger.ledger_id()?;
        let clock = BootClock::new().map_err(|error| {
            Failure::new(exit::UNAVAILABLE, "this machine's clock cannot be read", &error)
        })?;
        let known = RestoreOptions { no_holders: self.no_holders, above: self.above.map(Fence) };
        let recovery =
            ledger.begin_restore().map_err(|error| RestoreFailure::Open(ServiceError::from(error)))?;
        let restored = restore(&data, recovery, Limits::default(), known, &clock)?;
        let now = clock.wall_nanoseconds();
        let result = json!({
            "ledger": restored.ledger.to_string(),
            "epoch": restored.epoch,
            "copyEndedAtSeq": restored.copy_ended_at.0,
            "firstFence": restored.fence.0 + 1,
            "heldBackMs": restored.held_back_ms,
            "leases": restored.leases,
            "nobodyHolds": self.no_holders,
        });
        self.format.print(&result, |_| as_text(&restored, self.no_holders, now))
    }
}

fn as_text(restored: &RestoreReport, no_holders: bool, now: u64) -> String {
    let RestoreReport { ledger, epoch, copy_ended_at, fence, held_back_ms, leases } = restored;
    let grants = if no_holders {
        format!("Grants are given at once. Live leases in the copy, which are over now: {leases}.")
    } else {
        let until = format_wall_time(now.saturating_add(held_back_ms.saturating_mul(1_000_000)));
        format!(
            "Nothing is granted or renewed for {}, until {until}: by then whatever the original granted is over. \
             Live leases in the copy, which end when they were to end or are released before: {leases}.",
            format_duration(*held_back_ms)
        )
    };
    format!(
        "Ledger {ledger} goes on from this copy, which ended at event {}, in epoch {epoch}.\n\
         The first fence that can follow is {}: the original never gave it out.\n\
         {grants}\n\
         A new key signs from now on; what copies of the old one sign no longer counts here. Whoever checks passports needs \
         the new one, and should drop the old: tenure passport key\n\
         WARNING: the original must never be started again. If it still exists, remove it. Then: tenure serve\n",
        copy_ended_at.0,
        fence.0 + 1,
    )
}
