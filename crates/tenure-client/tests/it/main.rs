//! One integration binary: what a keeper promises to whoever works under its lease, and what a client does against the
//! real server, from outside.

mod agents;
mod agents_disconnect;
mod agents_restart;
mod hold;
mod keepalive_deadline;
mod keepalive_harness;
mod keepalive_network;
mod keepalive_random;
mod keepalive_retry;
mod keepalive_stop;
mod queue_wait;
mod requests;
mod tls;
