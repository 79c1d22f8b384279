//! What goes over the wire: requests, answers, problems and their codes, for the server and its clients alike.
//!
//! Names on the wire do not change. Fields may be added, so whoever reads an answer ignores what it does not know;
//! the server refuses what it does not know, because a caller counts on what it asked for.

mod code;
mod lease;
mod problem;
mod request;

pub use code::Code;
pub use lease::{Granted, Lease, LeaseState, OneLease, Page, Renewed};
pub use problem::Problem;
pub use request::{Acquire, Release, Renew};
