//! Which process an agent is, and whether it lives.
//!
//! A pid alone says little: it is used again. A process is named by its boot, its pid and when it started, and is watched
//! through a descriptor that belongs to it for ever.

mod agents;
mod choice;
mod family;
mod identity;
mod table;

pub use agents::{AgentProcess, agent_above, known_agent_at, takes_in_orphans};
pub use choice::{Ancestor, choose, known};
pub use family::{Watch, Writer, ancestors, descendants, open_for_writing, writers_of};
pub use identity::{Liveness, Process};
pub use table::{Stat, foreground_job, process_of, started};
