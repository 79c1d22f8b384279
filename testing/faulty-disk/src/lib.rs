//! A disk for tests and the simulator that crashes, loses what was not synced, fills up, stalls and lies. Everything
//! follows from a seed: the disk has no clock, no threads and no other source of randomness.

mod directory_entries;
mod fault_injection;
mod faults;
mod faulty_disk;
mod file_content;
mod rng;

pub use faulty_disk::FaultyDisk;
