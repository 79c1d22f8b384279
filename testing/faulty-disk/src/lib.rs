//! A disk for tests and the simulator that crashes, loses unsynced writes, fills up, stalls and reports false syncs. Everything
//! follows from a seed: the disk has no clock, no threads and no other source of randomness.

mod directory_entries;
mod fault_injection;
mod faults;
mod faulty_disk;
mod file_content;
mod rng;

pub use faulty_disk::FaultyDisk;
