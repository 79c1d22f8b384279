//! The device and its lease, over real WebSockets and real HTTP.

mod authentication;
mod broadcasts;
mod device;
mod exclusive;
mod gateway;
mod heartbeats;
mod inputs;
mod invalid_input;
mod ledger;
mod payloads;
mod permission_matrix;
mod render_stream;
mod rest;
mod rest_permissions;
