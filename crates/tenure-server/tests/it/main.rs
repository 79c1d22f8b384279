//! The real server on a real port, spoken to in real HTTP.

mod acquiring;
mod bodies;
mod connections;
mod disk;
mod ending;
mod handing_over;
mod hanging_up;
mod line;
mod listing;
mod modes;
mod recalling;
mod restarts;
mod revoking;
mod server;
mod together;
mod tokens;
mod waiting;
mod waiting_over_restarts;
mod who_may_ask;
mod withdrawing;
mod within_bounds;
