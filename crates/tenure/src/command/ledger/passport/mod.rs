//! `tenure passport`.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tenure_core::authority::Authority;
use tenure_ledger::signing::{Claims, KeyEntry, Keyring, PublicKey, TrustedKeys};
use tenure_ledger::{Batch, Seq, open_read_only, signing};
use tenure_registrar::runtime::ReplayError;

use crate::command::ledger::verify::keys_as_json;
use crate::config::LedgerLocation;
use crate::exit;
use crate::failure::Failure;
use crate::output::{Format, Table, write_json, write_text};

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
    Verify(Verify),
    Key(Key),
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

/// More than any passport: what is longer is not read to its end.
const MAX_BYTES: u64 = 1 << 16;

/// What must not be forgotten by whoever sees that a passport is genuine.
const NOT_PROVEN: &str = "It does not prove that the lease still lives, nor that who shows it is the holder: keep the \
                          highest fence that you have seen, and refuse lower ones.";

/// Says what a passport proves, or that it proves nothing.
///
/// It needs the public keys that you trust, and neither a ledger nor a server. Exit code 0: one of the keys signed it.
/// 1: none did, or it is no passport.
///
/// Example: tenure passport verify "$PASSPORT" --key "$(cat registrar.key)"
#[derive(Debug, Args)]
pub struct Verify {
    /// The passport; `-` or nothing reads it from standard input
    passport: Option<String>,
    /// A public key that you trust: 64 hexadecimal digits; can be repeated
    #[arg(long = "key", value_name = "HEX", value_parser = PublicKey::parse, required_unless_present = "keys_from")]
    keys: Vec<PublicKey>,
    /// Trust the keys of the ledger in this data directory, those that are retired too
    #[arg(long, value_name = "DIRECTORY")]
    keys_from: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

impl Verify {
    /// Checks the passport.
    pub fn run(self) -> Result<(), Failure> {
        let mut keys = self.keys;
        let keyring = self.keys_from.as_deref().map(keyring_of).transpose()?;
        keys.extend(keyring.iter().flat_map(Keyring::all_keys).map(|(_, key, _)| key));
        let trusted: TrustedKeys = keys.into_iter().collect();
        let text = match self.passport.filter(|text| text != "-") {
            Some(text) => text,
            None => from_standard_input()?,
        };
        let claims = signing::Passport::parse(text.trim()).and_then(|passport| passport.verify(&trusted));
        let claims = claims.map_err(|error| Failure::new(exit::NO, "the passport proves nothing", &error))?;
        // What it signed in its time is genuine; who stole it since could have signed it too.
        let retired_at = keyring.and_then(|keyring| keyring.retired_at(claims.key_id));
        self.format.print(&as_json(&claims, retired_at), |_| as_text(&claims, retired_at))
    }
}

fn from_standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .take(MAX_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| Failure::new(exit::NO, "standard input holds no passport", &error))?;
    Ok(text)
}

fn as_text(claims: &Claims, retired_at: Option<u64>) -> String {
    let mut table = Table::default();
    table.field("ledger", claims.ledger);
    table.field("lease", &claims.lease_id);
    table.field("resource", &claims.terms.resource);
    table.field("holder", &claims.terms.holder);
    table.field("mode", claims.terms.mode.as_str());
    table.field("fence", claims.terms.fence.0);
    table.field("from tick", claims.terms.at.0);
    table.field("until tick", claims.terms.expires_at.0);
    if let Some(authority) = &claims.terms.authority {
        add_authority(&mut table, claims, authority);
    }
    let retired = retired_at.map_or_else(String::new, |seq| format!(", which is retired since event {seq}"));
    table.field("signed by key", format!("{}{retired}", claims.key_id));
    format!("{table}Genuine: the registrar granted this. {NOT_PROVEN}\n")
}

fn add_authority(table: &mut Table, claims: &Claims, authority: &Authority) {
    match authority.scope.names() {
        None => table.field("allows", "everything"),
        Some([work_ids, tools, namespaces]) => {
            table.field("allows work", work_ids.join(", "));
            table.field("allows tools", tools.join(", "));
            table.field("allows in", namespaces.join(", "));
        }
    }
    let [episodes, tool_calls, tokens, duration_ms] = authority.budget.amounts();
    let budget = tenure_api::Budget { episodes, tool_calls, tokens, duration_ms };
    table.field("budget at first", crate::command::work::format_amounts(&budget));
    if let Some(parent) = authority.parent {
        table.field("derived from", claims.ledger.lease_id(parent));
    }
}

fn as_json(claims: &Claims, retired_at: Option<u64>) -> Value {
    let authority = claims.terms.authority.as_deref();
    json!({
        "ledger": claims.ledger.to_string(),
        "leaseId": claims.lease_id,
        "resource": claims.terms.resource.as_str(),
        "holder": claims.terms.holder.as_str(),
        "mode": claims.terms.mode.as_str(),
        "fence": claims.terms.fence.0,
        "fromTick": claims.terms.at.0,
        "untilTick": claims.terms.expires_at.0,
        "authority": authority.map(|own| crate::command::ledger::log::work_authority_fields(own, claims.ledger.tag())),
        "keyId": claims.key_id.to_string(),
        "keyRetiredSeq": retired_at,
    })
}

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
