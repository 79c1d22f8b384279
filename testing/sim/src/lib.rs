//! The simulator: from one seed, a world in which everything fails, and laws that hold all the same.
//!
//! It drives the very registrar, ledger and keeper that ship, because registrar and keeper are step functions and
//! the ledger asks for nothing but a disk: only the clocks, the disk, the network and the processes around them are
//! made up here. Everything follows from the seed, so that a broken law can be looked at again, step by step.

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

pub use golden::GoldenDigests;
pub use run::{SeedReport, run_agents, run_files, run_seed};
pub use simulation_log::EventCoverage;
