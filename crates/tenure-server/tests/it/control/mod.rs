//! The device and its lease, over real WebSockets and real HTTP.

mod bad_input;
mod broadcasts;
mod client;
mod exclusive;
mod gate;
mod heartbeats;
mod identity;
mod ledger;
mod matrix;
mod payloads;
mod rest;
