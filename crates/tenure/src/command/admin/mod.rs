//! The commands that start, stop and administer a server.

pub mod completions;
pub mod serve;
pub mod token;
