//! The real server on a real port, spoken to in real HTTP.

mod acquiring;
mod bodies;
mod connections;
mod crowds;
mod disk;
mod ending;
mod explaining;
mod listening;
mod listing;
mod numbers;
mod restarts;
mod server;
mod stream;
mod who_may_ask;
