//! For tests and simulations, never for a program: a disk on which everything goes wrong, and the suite that every
//! ledger passes. Everything in here follows from a seed: no clock, no threads, no chance of its own.

mod chance;
mod content;
mod control;
mod faults;
mod faulty_disk;
mod names;
pub mod suite;

pub use faulty_disk::FaultyDisk;
