//! Who is older.

use crate::kernel::name::Holder;

/// The age of an agent in its attempt. Smaller is older, and older is stronger; of two of the same age the one whose name
/// comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// When its attempt began, in milliseconds, as it said.
    pub priority: u64,
    pub agent: Holder,
}
