//! `tenure log`.

mod fields;

use std::io::Write as _;

use clap::Args;
use serde_json::{Map, Value};
use tenure_core::kernel::{ClockAnchor, Event, LedgerTag, decode};
use tenure_core::ledger::EventRecord;
use tenure_host::stderr::print_stderr;
use tenure_ledger::signing::KeyEntry;
use tenure_ledger::{Seq, open_read_only};
use tenure_registrar::runtime::{ReplayError, start_replay};

pub use self::fields::work_authority_fields;
use crate::config::LedgerLocation;
use crate::failure::Failure;
use crate::output::{buffered_stdout, tick_to_rfc3339};

/// Shows what happened: every event of the ledger in order, one line each.
///
/// Behind its number, time and type, an event has its fields as name=value: the ones that --json prints, less those
/// that only programs need.
///
/// It only reads, and may run while a server uses the ledger. Times are in UTC, by the anchor that the ledger itself
/// keeps; entries about keys have none. What was pruned is not shown, and standard error says so.
///
/// Example: tenure log --from 100 --limit 20 --json | jq .lease.resource
#[derive(Debug, Args)]
pub struct Log {
    #[command(flatten)]
    location: LedgerLocation,
    /// Print one JSON value for each event
    #[arg(long)]
    json: bool,
    /// The number of the first event to show
    #[arg(long, value_name = "SEQ", default_value_t = 1)]
    from: u64,
    /// How many events to show at most
    #[arg(long, value_name = "COUNT")]
    limit: Option<u64>,
}

/// One event of the ledger, and what is needed to show it.
struct LogEntry<'a> {
    seq: u64,
    record: &'a EventRecord,
    /// What happened to a lease, a waiter or the clock; nothing where the entry is about something else.
    event: Option<Event>,
    key: Option<KeyEntry>,
    tag: LedgerTag,
    anchor: ClockAnchor,
}

impl Log {
    /// Writes line after line.
    pub fn run(self) -> Result<(), Failure> {
        let data = self.location.existing_directory()?;
        let archive = open_read_only(&data)?.tolerate_active_writer();
        let mut batches = archive.batches();
        let tag = archive.ledger().tag();
        // Where the beginning is gone, so is the entry that ties ticks to times; a checkpoint remembers it.
        let mut anchor = match archive.oldest_checkpoint() {
            Some(_) => {
                start_replay(&*archive)?.state().clock().map_or(ClockAnchor::default(), |clock| clock.anchor)
            }
            None => ClockAnchor::default(),
        };
        let mut remaining = self.limit.unwrap_or(u64::MAX);
        let mut output = buffered_stdout();
        let mut has_started = false;
        while remaining > 0 {
            // What was shown stays shown, whatever is found behind it.
            let placed = match batches.next_batch() {
                Ok(Some(placed)) => placed,
                Ok(None) => break,
                Err(error) => {
                    output.flush()?;
                    return Err(error.into());
                }
            };
            if !has_started {
                has_started = true;
                report_pruned_events(self.from, batches.pruned_through());
            }
            for (seq, record) in (placed.batch.first.0..).zip(&placed.batch.records) {
                let entry = LogEntry::read(seq, record, tag, &mut anchor)?;
                if seq >= self.from && remaining > 0 {
                    remaining -= 1;
                    let line = if self.json { entry.as_json().to_string() } else { entry.as_line() };
                    writeln!(output, "{line}")?;
                }
            }
        }
        output.flush()?;
        Ok(())
    }
}

/// Says that the events before `first` are gone, if any of them was asked for.
fn report_pruned_events(from: u64, after: Option<Seq>) {
    let first = after.unwrap_or_default().0 + 1;
    if from < first {
        print_stderr(&format!("tenure: the events before {first} were pruned; the log begins there\n"));
    }
}

impl<'a> LogEntry<'a> {
    fn read(
        seq: u64,
        record: &'a EventRecord,
        tag: LedgerTag,
        anchor: &mut ClockAnchor,
    ) -> Result<Self, ReplayError> {
        let at = Seq(seq);
        let event = decode(record, tag).map_err(|source| ReplayError::Decode { at, source })?;
        let key = KeyEntry::from_record(record).map_err(|source| ReplayError::KeyEntry { at, source })?;
        if let Some(Event::Resumed { at, wall_anchor, .. }) = &event {
            *anchor = ClockAnchor { tick: *at, wall: *wall_anchor };
        }
        Ok(LogEntry { seq, record, event, key, tag, anchor: *anchor })
    }

    fn time(&self) -> Option<String> {
        self.event.as_ref().map(|event| tick_to_rfc3339(self.anchor, event.occurred_at()))
    }

    fn as_line(&self) -> String {
        let time = self.time().unwrap_or_else(|| "-".to_owned());
        let (seq, kind) = (self.seq, &self.record.event_type);
        format!("{seq:>8}  {time:<24}  {kind:<15}  {}", format_pairs(self.fields()).join(" "))
    }

    fn as_json(&self) -> Value {
        Value::Object(self.fields())
    }
}

/// The fields that a reader looks for, in this order; the others follow by their names.
const LEADING_FIELDS: [&str; 6] = ["resource", "holder", "agent_id", "session_id", "id", "ticket"];

/// Printed in other columns, or of use to programs alone.
const OMITTED_FIELDS: [&str; 7] = ["seq", "at", "type", "tick", "publicKey", "idempotency", "idempotencyKey"];

/// The pairs of one line. Nested fields are named by their last name: `lease.resource` is `resource`.
fn format_pairs(fields: Map<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    collect(fields, &mut found);
    let place =
        |name: &str| LEADING_FIELDS.iter().position(|first| *first == name).unwrap_or(LEADING_FIELDS.len());
    found.sort_by_key(|(name, _)| place(name));
    found.into_iter().map(|(name, value)| format!("{name}={}", shown(&value))).collect()
}

fn collect(fields: Map<String, Value>, found: &mut Vec<(String, Value)>) {
    for (name, value) in fields {
        // Each tick stands beside its time.
        if OMITTED_FIELDS.contains(&&*name) || name.ends_with("Tick") {
            continue;
        }
        match value {
            Value::Null => {}
            Value::Array(items) if items.is_empty() => {}
            Value::Object(labels) if name == "labels" => {
                found.extend(labels.into_iter().map(|(label, value)| (format!("label.{label}"), value)));
            }
            Value::Object(nested) => collect(nested, found),
            value => found.push((name, value)),
        }
    }
}

/// A value without quotes where that is unambiguous.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::Array(items) if items.iter().all(|item| item.as_str().is_some_and(is_plain)) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
        }
        value => value.to_string(),
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text
            .contains(|letter: char| letter.is_whitespace() || letter.is_control() || "\"=".contains(letter))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn log_line_starts_with_the_resource_and_quotes_text_with_spaces() {
        let Value::Object(fields) = json!({
            "seq": 7, "type": "lease.revoked", "actor": "admin", "detail": "on holiday", "expiresTick": 9,
            "lease": { "fence": 3, "id": "a-3", "resource": "deploy:prod", "labels": { "team": "x y" } },
            "circle": ["a", "b"], "task": null, "outside": [],
        }) else {
            panic!("an object")
        };
        let line = format_pairs(fields).join(" ");
        let expected = "resource=deploy:prod id=a-3 actor=admin circle=a,b detail=\"on holiday\" fence=3 label.team=\"x y\"";
        assert_eq!(line, expected);
    }
}
