//! What holds for any events whatever, seen from outside the crate.

mod lease_bytes;
mod lease_checkpoints;
mod lease_examples;
mod lease_sequences;
mod lease_strategies;
