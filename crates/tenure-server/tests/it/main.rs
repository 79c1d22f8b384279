//! The real server on a real port, spoken to in real HTTP.

mod acquiring;
mod agents;
mod bodies;
mod bounds;
mod connections;
mod control;
mod crowds;
mod described;
mod disk;
mod ending;
mod error_pages;
mod explaining;
mod files;
mod handing_over;
mod hanging_up;
#[path = "../../../tenure-control/tests/it/image.rs"]
mod image;
mod intents;
mod limited;
mod line;
mod listening;
mod listing;
mod local_socket;
mod modes;
mod numbers;
mod pools;
mod recalling;
mod restarts;
mod revoking;
mod server;
mod slow;
mod socket;
mod stream;
mod tls;
mod together;
mod tokens;
#[path = "../support/traces.rs"]
mod traces;
mod waiting;
mod waiting_over_restarts;
mod who_may_ask;
mod withdrawing;
mod within_bounds;
#[expect(dead_code, reason = "the gateway's own tests look at more of it")]
#[path = "../support/wled/mod.rs"]
mod wled;
mod work;
