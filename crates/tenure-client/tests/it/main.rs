//! One integration binary: what a keeper promises to whoever works under its lease, and what a client does against the
//! real server, from outside.

mod agents;
mod agents_doubt;
mod agents_restart;
mod beliefs;
mod holding;
mod network;
mod random;
mod requests;
mod stops;
mod story;
mod tls;
mod tries;
mod waiting;
