//! One integration binary: what a keeper promises to whoever works under its lease, and what a client does against the
//! real server, from outside.

mod agents;
mod agents_disconnect;
mod agents_restart;
mod hold;
mod queue_wait;
mod requests;
mod tls;
mod keepalive {
    mod deadline;
    pub mod harness;
    mod network;
    pub mod random;
    mod retry;
    mod stop;
}
