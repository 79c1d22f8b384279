//! What a worker needs to know.

use std::path::PathBuf;

use tenure_core::kernel::TickDuration;

use super::command_template::CommandTemplate;
use crate::process_supervisor::TerminationMargins;

/// How sessions are carried out on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How many tuners there are, numbered from 0.
    pub tuners: u32,
    /// How long the leases of sessions last, and the guard.
    pub ttl_ms: u64,
    pub renew_every_ms: u64,
    /// How long a pipeline has between SIGTERM and SIGKILL.
    pub stop_grace_ms: u64,
    pub logs: PathBuf,
    pub logs_kept: usize,
    pub command: CommandTemplate,
    /// What carries out a session of a recording, if that is another one.
    pub recording_command: Option<CommandTemplate>,
}

impl Settings {
    /// How many tuners there may be.
    pub const MAX_TUNERS: u32 = 64;

    /// How much time the end of a pipeline takes.
    pub fn margins(&self) -> TerminationMargins {
        TerminationMargins::for_lease(
            TickDuration::from_millis(self.ttl_ms),
            Some(TickDuration::from_millis(self.stop_grace_ms)),
        )
    }
}
