//! Which process an agent is, and whether it lives.
//!
//! A pid alone says little: it is used again. A process is named by its boot, its pid and when it started, and is watched
//! through a descriptor that belongs to it for ever.

mod agents;
mod choice;
mod family;
mod identity;
mod open_files;
mod table;
mod watch;
mod writers;

pub use agents::{AgentProcess, agent_above, known_agent_at, takes_in_orphans};
pub use choice::{Ancestor, choose, known};
pub use family::{ancestors, descendants};
pub use identity::{Liveness, Process};
pub use open_files::open_for_writing;
pub use table::{Stat, foreground_job, process_of, started};
pub use watch::Watch;
pub use writers::{Writer, writers_of};
