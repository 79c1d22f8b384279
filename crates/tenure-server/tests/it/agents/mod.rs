//! Agents over real HTTP.

mod client;
mod declaring;
