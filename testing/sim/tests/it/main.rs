//! The simulator itself, and what it says of Tenure.

mod agents;
mod determinism;
mod file_invariant_violations;
mod files;
mod golden_records;
mod invariant_violations;
mod seeds;
mod work;
mod work_invariant_violations;
