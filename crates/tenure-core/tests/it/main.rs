//! One integration binary: what the crate promises, from outside.

mod kernel_corners;
mod kernel_exhaustion;
mod kernel_keys;
mod kernel_leases;
mod kernel_queue;
mod lease_bytes;
mod lease_checkpoints;
mod lease_examples;
mod lease_sequences;
mod lease_strategies;
mod story;
