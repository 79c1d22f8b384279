//! `tenure passport key`.

use clap::Args;
use serde_json::json;

use super::keyring_of;
use crate::command::verify::keys_as_json;
use crate::configuration::LedgerLocation;
use crate::failure::Failure;
use crate::output::{write_json, write_text};

/// Prints the public keys of a ledger, to hand to those who check passports.
///
/// One line for each key that may sign now. With --json also those that are retired: what they signed while they
/// counted is still genuine. Hand them over in a way that nobody can tamper with.
///
/// Example: tenure passport verify PASSPORT --key "$(tenure passport key)"
#[derive(Debug, Args)]
pub struct Key {
    #[command(flatten)]
    location: LedgerLocation,
    /// Print one JSON value, with the retired keys
    #[arg(long)]
    json: bool,
}

impl Key {
    /// Reads the keys and prints them.
    pub fn run(self) -> Result<(), Failure> {
        let keyring = keyring_of(&self.location.existing_directory()?)?;
        if self.json {
            let ledger = keyring.ledger().to_string();
            write_json(&json!({ "ledger": ledger, "keys": keys_as_json(&keyring) }))?;
        } else {
            write_text(&keyring.active_keys().map(|key| format!("{key}\n")).collect::<String>())?;
        }
        Ok(())
    }
}
