//! The simulator: from one seed, a world in which everything fails, and laws that hold all the same.
//!
//! It drives the registrar, ledger and `KeepAlive` that ship: two of them are step functions, and the ledger needs nothing
//! but a disk. Only clocks, disk, network and processes are simulated. Everything follows from the seed, so that a violation
//! can be replayed, step by step.
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
