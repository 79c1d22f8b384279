//! Checkpoints: the state as bytes, and back.
//!
//! One state has one form: it depends neither on the hash seed nor on the memory layout, so that the checkpoints of two
//! replicas can be compared by their hash. Numbers are varints of the shortest form; texts have their length before them,
//! lists their count.
//!
//! | part | form |
//! |---|---|
//! | version | one byte |
//! | head | now; whether there is a clock, and its reading; the last fence and ticket; whether grants are held back after a restore, and until when |
//! | principals | each name, ascending |
//! | leases | by fence: its distance from the one before, holder, resource, terms |
//! | waits | by ticket: its distance from the one before, holder, since when, for how long, requests |
//! | idle holders | longest idle first: name, principal, since when |
//! | keys | for each principal, by key: key, body, 0 and the ticket or the count and the fences; the tick at which it is forgotten, if none of these is active |
//! | ended leases | in the order of their ends: fence, resource, holder, principal, terms, when and how it ended |
//! | intents | the revision, active sessions by name, ended ones by end |
//! | agents | agents by name, waiting agents oldest first, leases that were touched |
//! | work | the authority of active leases by fence, then of ended ones |
//! | files | sessions by name, tickets and reports by number, uncommitted files |
//!
//! A request has the count of its alternatives, and these, between its resource and the rest. A key of a spend has 0, 0, the
//! lease, and the budget that remained.
//!
//! A holder is 0, its name and its principal where it first appears, and its number from 1 afterwards; so is a resource,
//! without a principal. A principal is its number from 0. Past ticks are counted back from now. In ended leases, holders and
//! resources are names: the state may have no other entry for them.
//!
//! Derived values are left out, so that they cannot contradict the rest: counts, indexes, and the key of a lease or a wait,
//! which is the one that leads there. So are the numbers of idle holders, of which only the order matters, and the queue of
//! keys to be forgotten: between two events it holds each key that has a tick to be forgotten at, once, and keys of one tick
//! are forgotten together.

pub(in crate::kernel) mod bytes;
pub(in crate::kernel) mod decode;
mod encode;
pub(in crate::kernel) mod fields;

use thiserror::Error;

/// The only version that is written and read: there is one until the first release.
const VERSION: u8 = 6;

/// Bytes that are no state. Nothing was restored; the events before the checkpoint still say everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// Another version of this program wrote it. Use that one, or replay from an older checkpoint.
    #[error("the state is stored in form {found}, which this version does not know")]
    Version { found: u8 },
    /// It cannot have been saved like this. Replay from an older checkpoint.
    #[error("the state is damaged before byte {at}: {reason}")]
    Damaged {
        at: usize,
        /// What is wrong, for people.
        reason: &'static str,
    },
}
