//! The server of this machine, as hooks of agents find it: over its local socket alone, and started where nobody listens.

mod autostart;
mod detached_process;
mod local_server;
mod socket_hint;
mod start;

pub use self::autostart::{AutostartClient, DIAGNOSE_COMMAND, RequestError, START_COMMAND, is_server_gone};
pub use self::detached_process::{SUBCOMMAND, SUBCOMMAND as DETACHED, run};
pub use self::local_server::LocalServer;
pub use self::socket_hint::write;
pub use self::start::{is_listening, start};
