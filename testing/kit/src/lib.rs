//! What integration tests start and speak to: servers in this process, clients of each API, and stand-ins for whatever
//! is around them.
//!
//! Only tests depend on this crate. Everything in it panics where a test would fail.

pub mod agents;
pub mod client;
pub mod control;
pub mod event_stream;
pub mod fake_server;
pub mod files;
pub mod history;
pub mod home;
pub mod http;
pub mod intents;
pub mod network;
pub mod openapi;
pub mod pipelines;
pub mod process;
pub mod program;
pub mod proxy;
pub mod repository;
pub mod server;
pub mod traces;
pub mod wait;
pub mod websocket;
pub mod wled;

pub use crate::client::{HeldLease, TestClient};
pub use crate::event_stream::{listen, listen_as};
pub use crate::home::TestHome;
pub use crate::http::{Response, bearer, milliseconds, one_response, over_socket, read_to_end, text};
pub use crate::process::{CommandOutput, FakeAgent, is_unlocked, signal, text_of};
pub use crate::program::{ServerProcess, output, program, run, serve, tenure};
pub use crate::repository::Repository;
pub use crate::server::{TestServer, lease_request, waiting_request};
pub use crate::wait::{LIMIT, eventually, in_time, now, pause, stays, wait_until};
