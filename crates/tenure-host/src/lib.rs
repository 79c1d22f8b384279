//! This machine: paths, processes and which of them are agents, git, blame, and changes in a working tree.
//!
//! It knows no lease and no server, and decides nothing.

pub mod blame;
pub mod coding_agent;
pub mod git;
pub mod interprocess;
pub mod kernel_limits;
pub mod paths;
pub mod process;
pub mod stderr;
pub mod watch;
