//! `tenure log`.

mod api_fields;
mod field_pairs;
mod fields;

use std::io::Write as _;

use clap::Args;
use serde_json::Value;
use tenure_core::kernel::{ClockAnchor, Event, LedgerTag, decode};
use tenure_core::ledger::EventRecord;
use tenure_ledger::signing::KeyEntry;
use tenure_ledger::{Seq, open_read_only};
use tenure_registrar::runtime::{ReplayError, start_replay};

pub use self::api_fields::work_authority_fields;
use crate::configuration::LedgerLocation;
use crate::failure::Failure;
use crate::output::{buffered_stdout, tick_to_rfc3339};
use crate::terminal_message::print_stderr;

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
        format!("{seq:>8}  {time:<24}  {kind:<15}  {}", field_pairs::format_pairs(self.fields()).join(" "))
    }

    fn as_json(&self) -> Value {
        Value::Object(self.fields())
    }
}
