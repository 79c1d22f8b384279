//! The device and its lease, over real WebSockets and real HTTP.

mod bad_input;
mod broadcasts;
mod device;
mod exclusive;
mod gate;
mod gateway;
mod heartbeats;
mod identity;
mod inputs;
mod ledger;
mod matrix;
mod payloads;
mod rest;
mod stream;
