//! `tenure ledger moved`.

use clap::Args;
use serde_json::json;
use tenure_ledger::embedded::{identity, moved};

use crate::configuration::Place;
use crate::failure::Failure;
use crate::output::{Format, write_answer, write_text};

/// Says that a ledger was moved to this machine, and is no longer used where it was.
///
/// For a data directory that was moved as it was, with nothing served from it since. If the old machine went on
/// serving after the directory was copied, this is the wrong command, and leases could be granted twice: use `tenure
/// ledger restored`.
///
/// Example: tenure ledger moved --data /var/lib/tenure
#[derive(Debug, Args)]
pub struct Moved {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    format: Format,
}

impl Moved {
    /// Makes it this machine's.
    pub fn run(self) -> Result<(), Failure> {
        let data = self.place.existing()?;
        let was_elsewhere = moved(&data)?;
        let ledger = identity(&data)?.ledger;
        if self.format.json {
            write_answer(&json!({ "ledger": ledger.to_string(), "moved": was_elsewhere }))?;
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
