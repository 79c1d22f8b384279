//! One integration binary: which file a name reaches and which process an agent is, with real files, real git and real
//! processes.

mod again;
mod paths_faults;
mod paths_mounts;
mod paths_random;
mod paths_trees;
mod paths_world;
mod process_agents;
mod process_life;
mod process_open;
//! What the gate promises about this machine.

mod hooks;
