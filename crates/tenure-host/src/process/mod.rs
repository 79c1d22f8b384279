//! Identity and liveness of processes, and which of them is an agent.
//!
//! A pid is reused. So a process is identified by its boot, its pid and its start time, and is watched through a pidfd.

mod agent_detection;
mod async_exit_watch;
mod identity;
mod proc_table;
mod process_tree;

pub use agent_detection::{
    AgentProcess, Ancestor, adopts_reparented_children, ancestor_agent, choose_agent, detect_agent,
    nearest_known_agent,
};
pub use async_exit_watch::AsyncExitWatch;
pub use identity::{Liveness, is_descendant, liveness, of, own};
pub use proc_table::{ProcessStat, foreground_process_group, process_of_thread, start_time};
pub use process_tree::{
    ProcessExitWatch, WriterProcess, ancestors, descendants, open_for_writing, writers_of,
};
