//! Compares every response with the ledger that the server left behind.
//!
//! The ledger says exactly what happened, in which order and at which tick, and what the server's clock said now and then.
//! Where that is the clock of the history, ticks are moments of the history: then a response must be explained by an entry
//! between its request and itself, a denial by a holder or waiter that blocked it in that time, and a read by the content of
//! the ledger at one of those moments. On another clock only numbers, names and order are compared.
//!
//! **Not checked.** When an entry reached the disk: only that it is there in the end, and that no read and no denial rests on
//! an entry that is not. Whether a denial is right that names a waiter, if that waiter was about to be granted at the same
//! tick.

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
