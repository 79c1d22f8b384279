//! For tests and simulations, never for a program: a disk on which everything goes wrong, and the suite that every
//! ledger passes. Everything in here follows from a seed: no clock, no threads, no chance of its own.

pub mod conformance;
mod directory_entries;
mod fault_injection;
mod faults;
mod faulty_disk;
mod file_content;
mod rng;

pub use faulty_disk::FaultyDisk;
