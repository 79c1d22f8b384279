//! Whether any order of the operations explains the responses, resource by resource.
//!
//! **The search.** It looks for an order in which every operation stands between its request and its response, and in which
//! one table of leases would have responded just so. Operations without a response may stand anywhere from their request
//! to their end, or nowhere. (Wing and Gong's search, with memoization.)
//!
//! **Time.** A lease also ends by itself, at a moment of the server's clock which clients know within bounds: a response
//! that it is valid for `v` milliseconds, requested at `a` and received at `b`, puts its end between `a + v` and
//! `b + v + 1`. Each lease has such an interval. Whatever some moment in it would explain is accepted: a history that is
//! rejected is wrong, one that is accepted may still hide a mistake that is smaller than the time that its responses
//! took. [`crate::ledger`] knows the moments exactly.
//!
//! **Not checked here.** The server decides by the moment at which a request arrived, but shows what is on the disk: a
//! reader may be told that a lease expired while its renewal is being written. So `expired` alone, from a reader, ends
//! nothing. The order in a queue is not checked either; a denial is accepted if any holder that blocked it may have waited.
//! A batch is checked on each of its resources separately.

mod lease_table;
mod resource_operation;
mod search;
mod step;

use std::collections::BTreeSet;

use crate::history::History;
use crate::law::Violation;

pub use search::{SearchEffort, SearchResult};

/// How much is tried for each resource before the search says that it does not know. Good histories need a few steps for
/// each operation; bad ones may need very many.
pub const DEFAULT_MAX_STEPS: usize = 2_000_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchVerdict {
    Holds,
    /// There is none.
    Violated(Box<Violation>),
    Undecided,
}

/// What was found on a resource, and what it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceVerdict {
    pub resource: String,
    pub verdict: SearchVerdict,
    /// How many operations it has, and how much was tried.
    pub effort: SearchEffort,
}

/// Looks at every resource of a history, and gives up on one after `enough` steps.
pub fn check(history: &History, max_steps: usize) -> Vec<ResourceVerdict> {
    let resources: BTreeSet<&str> = history.operations.iter().flat_map(|one| one.resources()).collect();
    let check = |resource: &str| {
        let parts = resource_operation::operations_on(history, resource);
        let SearchResult { verdict, effort } = search::search(history, resource, &parts, max_steps);
        ResourceVerdict { resource: resource.to_owned(), verdict, effort }
    };
    resources.into_iter().map(check).collect()
}

#[cfg(test)]
mod exhaustive_tests;
