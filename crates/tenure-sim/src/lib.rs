//! The simulator: from one seed, a world in which everything fails, and laws that hold all the same.
//!
//! It drives the very registrar, ledger and keeper that ship, because registrar and keeper are step functions and
//! the ledger asks for nothing but a disk: only the clocks, the disk, the network and the processes around them are
//! made up here. Everything follows from the seed, so that a broken law can be looked at again, step by step.

mod agenda;
mod census;
mod client;
mod clock;
mod crew;
mod fleet;
mod golden;
mod host;
pub mod laws;
mod log;
mod records;
mod rng;
mod run;
mod storage;
mod storm;
mod tree;

pub use golden::Golden;
pub use log::Census;
pub use run::{SeedReport, run_crew, run_seed, run_tree};
