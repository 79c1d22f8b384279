//! What kernel and reducer must never judge differently: time, names, and ends.
//!
//! Both layers call these functions; neither writes the comparison again. A change here changes
//! what a lease promises, so it also changes `docs/guarantees.md`.

pub mod names;
pub mod overlap;
pub mod time;
