//! One integration binary: what the crate promises, from outside.

mod kernel_apply;
mod kernel_bad_input;
mod kernel_bytes;
mod kernel_bytes_damaged;
mod kernel_circles;
mod kernel_codec;
mod kernel_corners;
mod kernel_event_strategies;
mod kernel_exhaustion;
mod kernel_forecast;
mod kernel_golden;
mod kernel_granting;
mod kernel_keys;
mod kernel_leases;
mod kernel_misfits;
mod kernel_model;
mod kernel_pools;
mod kernel_properties;
mod kernel_queue;
mod kernel_strategies;
mod lease_bytes;
mod lease_checkpoints;
mod lease_examples;
mod lease_sequences;
mod lease_strategies;
mod story;
