//! The real server on a real port, spoken to in real HTTP.

mod acquiring;
mod bodies;
mod connections;
mod crowds;
mod disk;
mod ending;
mod explaining;
mod handing_over;
mod hanging_up;
mod line;
mod listening;
mod listing;
mod modes;
mod numbers;
mod recalling;
mod restarts;
mod revoking;
mod server;
mod stream;
mod together;
mod waiting;
mod waiting_over_restarts;
mod who_may_ask;
mod withdrawing;
