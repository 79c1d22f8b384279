//! The testkit: servers in this process, clients of each API, and fakes of what is around them.
//!
//! Only tests depend on this crate. Everything in it panics where a test would fail.

pub mod agents;
pub mod client;
pub mod control;
pub mod event_stream;
pub mod fake_server;
pub mod files;
pub mod home;
pub mod http;
pub mod intents;
pub mod leak_recorder;
pub mod openapi;
pub mod pipelines;
pub mod process;
pub mod program;
pub mod proxied_server;
pub mod proxy;
pub mod repository;
pub mod sample_ledger;
pub mod server;
pub mod wait;
pub mod websocket;
pub mod wled;

pub use crate::client::{AcknowledgedLease, TestClient};
pub use crate::event_stream::{open_event_stream, open_event_stream_as};
pub use crate::home::TestHome;
pub use crate::http::{
    Response, bearer, exchange_keep_alive, json_string, read_to_end, request_on_socket, unix_milliseconds,
};
pub use crate::process::{CommandOutput, FakeAgent, is_file_unlocked, read_or_empty, signal};
pub use crate::program::{
    ServerProcess, program_path, run_command, run_expecting_failure, serve_command, tenure_command,
};
pub use crate::repository::TestRepository;
pub use crate::server::{TestServer, lease_request, queued_lease_request};
pub use crate::wait::{LIMIT, assert_stays, eventually, now, sleep, wait_until, with_timeout};
