//! The real server on a real port, spoken to in real HTTP.

mod acquiring;
mod bodies;
mod bounds;
mod connections;
mod disk;
mod ending;
mod listing;
mod local_socket;
mod restarts;
mod server;
mod slow;
mod tls;
mod tokens;
mod who_may_ask;
