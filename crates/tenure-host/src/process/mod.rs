//! Which process an agent is, and whether it lives.
//!
//! A pid alone says little: it is used again. A process is named by its boot, its pid and when it started, and is watched
//! through a descriptor that belongs to it for ever.

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
