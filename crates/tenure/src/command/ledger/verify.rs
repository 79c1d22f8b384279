//! `tenure verify`.

use clap::Args;
use serde_json::{Value, json};
use tenure_ledger::signing::Keyring;
use tenure_registrar::runtime::{LedgerVerification, verify_ledger_directory};

use crate::config::LedgerLocation;
use crate::failure::Failure;
use crate::output::{Format, Table};
use crate::terminal_message::ProgressLine;

/// Checks every bit of a ledger: sums, hash chain, checkpoints, signatures, and that its events add up.
///
/// It only reads, takes no lock and repairs nothing, so it may run while a server uses the ledger. Exit code 0: all is
/// as it was written and signed. 1: something is not; standard error names the file, the byte, the record and the
/// reason. 69: there is nothing that can be read.
///
/// What it cannot tell: whether the first key is the right one (compare it with one that you got another way), and
/// whether the ledger once went on behind its end (the witness can, when the ledger is opened).
///
/// Example: tenure verify --data /var/lib/tenure
#[derive(Debug, Args)]
pub struct Verify {
    #[command(flatten)]
    location: LedgerLocation,
    #[command(flatten)]
    format: Format,
}

impl Verify {
    /// Reads everything.
    pub fn run(self) -> Result<(), Failure> {
        let data = self.location.existing_directory()?;
        let mut progress = ProgressLine::new();
        let found = verify_ledger_directory(&data, &mut |read, all| {
            progress.show(&format!("segment {read} of {all}"))
        });
        drop(progress);
        let found = found?;
        self.format.print(&as_json(&found), |_| as_text(&found))
    }
}

fn as_text(found: &LedgerVerification) -> String {
    let report = &found.report;
    let mut table = Table::default();
    table.field("ledger", report.ledger);
    table.field("epoch", report.epoch);
    table.field("form", report.form);
    let (first, last) = (report.after.0 + 1, report.head.seq.0);
    table.field("events", if first > last { "none".to_owned() } else { format!("{first} to {last}") });
    if found.verified_after.0 > 0 {
        let from = found.verified_after.0 + 1;
        table.field(
            "added up",
            format!("from event {from} on; a signed checkpoint vouches for what was before"),
        );
    }
    table.field("batches", report.batches);
    table.field("segments", report.segments);
    table.field("checkpoints", report.checkpoints);
    for (added_at, key, retired_at) in found.keyring.all_keys() {
        let until = retired_at.map_or_else(String::new, |seq| format!(", retired by event {seq}"));
        table.field("key", format!("{} since event {added_at}{until}", key.id()));
    }
    table.field("head", report.head.hash);
    let torn = if report.has_torn_tail {
        "yes: the last write was cut short, and nobody was told that it was done"
    } else {
        "no"
    };
    table.field("torn tail", torn);
    format!("{table}Every bit is as it was written, the events add up, and every signature is genuine.\n")
}

fn as_json(found: &LedgerVerification) -> Value {
    let report = &found.report;
    json!({
        "ledger": report.ledger.to_string(),
        "epoch": report.epoch,
        "form": report.form,
        "firstSeq": report.after.0 + 1,
        "lastSeq": report.head.seq.0,
        "addedUpFromSeq": found.verified_after.0 + 1,
        "batches": report.batches,
        "segments": report.segments,
        "checkpoints": report.checkpoints,
        "keys": keys_as_json(&found.keyring),
        "headHash": report.head.hash.to_string(),
        "tornTail": report.has_torn_tail,
    })
}

/// The keys of a ledger for programs: which, and from which event to which they may sign.
pub fn keys_as_json(keyring: &Keyring) -> Value {
    let key = |(added_at, key, retired_at): (u64, tenure_ledger::signing::PublicKey, Option<u64>)| {
        json!({
            "id": key.id().to_string(),
            "publicKey": key.to_string(),
            "addedSeq": added_at,
            "retiredSeq": retired_at,
        })
    };
    keyring.all_keys().map(key).collect()
}
