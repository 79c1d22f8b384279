//! `tenure ledger raise`.

use clap::Args;
use serde_json::json;
use tenure_ledger::embedded::{identity, raise};

use crate::configuration::Place;
use crate::failure::Failure;
use crate::output::{write_json, write_text};

/// Lets a ledger be written in the newest form, which older versions of tenure cannot read.
///
/// Until then a new version writes the form before, so that you can still go back to the old program.
///
/// Example: tenure ledger raise --data /var/lib/tenure
#[derive(Debug, Args)]
pub struct Raise {
    #[command(flatten)]
    place: Place,
    /// Print one JSON value instead of text
    #[arg(long)]
    json: bool,
}

impl Raise {
    /// Raises the form.
    pub fn run(self) -> Result<(), Failure> {
        let data = self.place.existing()?;
        let was_raised = raise(&data)?;
        let identity = identity(&data)?;
        let (ledger, form) = (identity.ledger, identity.form);
        if self.json {
            write_json(&json!({ "ledger": ledger.to_string(), "form": form, "raised": was_raised }))?;
        } else if was_raised {
            write_text(&format!(
                "Ledger {ledger} is written in form {form} from now on. Older versions of tenure cannot read it any \
                 more.\n"
            ))?;
        } else {
            write_text(&format!("Ledger {ledger} is in form {form}, the newest; nothing was changed.\n"))?;
        }
        Ok(())
    }
}
