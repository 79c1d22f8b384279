//! The simulator: from one seed, a world in which everything fails, and laws that hold all the same.
//!
//! It drives the very registrar, ledger and keeper that ship, because registrar and keeper are step functions and
//! the ledger asks for nothing but a disk: only the clocks, the disk, the network and the processes around them are
//! made up here. Everything follows from the seed, so that a broken law can be looked at again, step by step.
//!
//! [`run_seed`] chooses one of four scenarios by the number of the seed: plain leases with intent sessions, random commands,
//! agents, and coding agents in a working tree. The fifth, clients of the work API, is run by [`run_work`] alone: a seed must
//! keep its scenario, or its golden digest would change.

mod agents;
mod client;
mod clients;
mod clock;
mod coverage;
mod event_queue;
mod files;
mod golden;
mod host;
pub mod invariants;
mod random_scenario;
mod records_digest;
mod rng;
mod run;
mod simulation_log;
mod storage;
mod work;

pub use golden::GoldenDigests;
pub use run::{SeedReport, run_agents, run_files, run_seed, run_work};
pub use simulation_log::EventCoverage;
