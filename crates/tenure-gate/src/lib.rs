//! Files at the runtime boundary of coding agents: which file a name reaches, which process an agent is, what an agent
//! says through its hooks and how it wants to be answered, what git knows, and how all of that is put in place.
//!
//! It decides nothing about a lease. The server asks it what is on this machine; the command line speaks through it with
//! agents and git.

pub mod blame;
pub mod coding_agent;
pub mod git;
pub mod hooks;
pub mod install;
pub mod interception_coverage;
pub mod kernel_limits;
pub mod paths;
pub mod process;
pub mod syscall_effects;
pub mod watch;
