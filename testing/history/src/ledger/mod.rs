//! Every answer against the ledger that the server left behind.
//!
//! The ledger says exactly what happened, in which order and at which tick, and what the server's clock said now and then.
//! Where that is the clock of the history, ticks are moments of the history: then an answer must be explained by an
//! entry between its question and itself, a refusal by somebody who was in its way in that time, and what a reader was
//! shown by what stood in the ledger at one of those moments. On another clock only numbers, names and order are
//! compared.
//!
//! **What is not seen.** When an entry reached the disk: only that it is there in the end, and that readers and refusals
//! never rest on what is not. Whether a refusal is right that says that somebody waited, while that one was about to be
//! let in at the same tick.

mod consistency;
mod entry;
mod read_checks;
mod response_checks;
mod timeline;
mod unacknowledged_entries;

use crate::history::History;
use crate::law::Violation;

pub use entry::{LedgerEntry, LedgerEvent, LoadError, load};

/// Everything that the ledger says against itself, and against what clients were told.
pub fn check(history: &History, entries: &[LedgerEntry]) -> Vec<Violation> {
    let mut violations = consistency::check(entries);
    let timeline = timeline::Timeline::new(entries, history.clock.as_deref());
    let explained = response_checks::check(history, &timeline, &mut violations);
    unacknowledged_entries::check(history, &timeline, &explained, &mut violations);
    read_checks::check(history, &timeline, &explained, &mut violations);
    violations
}
