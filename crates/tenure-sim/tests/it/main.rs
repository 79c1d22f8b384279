//! The simulator itself, and what it says of Tenure.

mod crews;
mod determinism;
mod laws_can_be_broken;
mod laws_of_files_can_be_broken;
mod records_golden;
mod seeds;
mod trees;
