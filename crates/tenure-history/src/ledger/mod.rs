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

mod answers;
mod book;
mod entry;
mod lives;
mod readers;
mod unasked;

use crate::history::History;
use crate::law::Violation;

pub use entry::{Entry, Event, LoadError, load};

/// Everything that the ledger says against itself, and against what clients were told.
pub fn check(history: &History, entries: &[Entry]) -> Vec<Violation> {
    let mut violations = book::check(entries);
    let lives = lives::Lives::of(entries, history.clock.as_deref());
    let claims = answers::check(history, &lives, &mut violations);
    unasked::check(history, &lives, &claims, &mut violations);
    readers::check(history, &lives, &claims, &mut violations);
    violations
}
