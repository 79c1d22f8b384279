//! The device and its lease, over real WebSockets and real HTTP.

mod broadcasts;
mod device;
mod exclusive;
mod gateway;
mod heartbeats;
mod identity;
mod inputs;
mod invalid_input;
mod ledger;
mod payloads;
mod permission_matrix;
mod rest;
mod rest_permissions;
mod stream;
