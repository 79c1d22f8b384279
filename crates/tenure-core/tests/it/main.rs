//! One integration binary: what the crate promises, from outside.

mod kernel_keys;
mod kernel_leases;
mod kernel_queue;
mod story;
