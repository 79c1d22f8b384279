//! The real server on a real port, spoken to in real HTTP.

mod acquiring;
mod bodies;
mod connections;
mod disk;
mod ending;
mod listening;
mod listing;
mod restarts;
mod server;
mod stream;
mod who_may_ask;
