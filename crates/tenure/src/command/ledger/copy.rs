//! `tenure ledger copy`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tenure_ledger::embedded::copy;

use crate::configuration::Place;
use crate::failure::Failure;
use crate::output::Format;

/// Copies a ledger, with the keys beside it, to a new directory, for when the original is lost.
///
/// The ledger may be in use. Every bit of the copy is checked. A copy cannot be served as it is, so that it is never
/// taken for the original: `tenure ledger restored` puts it in the original's place.
///
/// Example: tenure ledger copy --to /backup/tenure-monday
#[derive(Debug, Args)]
pub struct CopyTo {
    /// Where to: a directory that does not exist yet
    #[arg(long, value_name = "DIRECTORY")]
    to: PathBuf,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    format: Format,
}

impl CopyTo {
    /// Copies, and says what the copy holds.
    pub fn run(self) -> Result<(), Failure> {
        let data = self.place.existing()?;
        let report = copy(&data, &self.to)?;
        let (ledger, to) = (report.identity.ledger, self.to.display());
        let (first, last, head) = (report.after.0 + 1, report.head.seq.0, report.head.hash);
        let result = json!({
            "ledger": ledger.to_string(),
            "epoch": report.identity.epoch,
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
