//! What can be chosen about files.

use tenure_core::kernel::{Limits, TickDuration};

/// What was chosen. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSettings {
    /// After how long the one retry for a file is due.
    pub retry_ms: u64,
    /// For how long a session has files after its turn ended and nothing was heard of it.
    pub idle_ms: u64,
    /// Whether agents are only told that somebody else has a file, and may change it all the same.
    pub warn_only: bool,
    /// Whether commands of agents run only where each of their changes is asked for.
    pub guarded_shells: bool,
    /// Whether working trees in which agents are at work are watched for changes that no lease explains.
    pub audit: bool,
    /// After how long without leases, sessions and requests the server stops by itself; nothing is never.
    pub stop_when_idle_ms: Option<u64>,
}

impl Default for FileSettings {
    fn default() -> Self {
        Self {
            retry_ms: 180_000,
            idle_ms: 30_000,
            warn_only: false,
            guarded_shells: false,
            audit: true,
            stop_when_idle_ms: None,
        }
    }
}

impl FileSettings {
    /// What the kernel has to know of it.
    pub(crate) fn limits(&self, base: Limits) -> Limits {
        Limits {
            file_retry_delay: TickDuration::from_millis(self.retry_ms.max(1)),
            file_idle_timeout: TickDuration::from_millis(self.idle_ms.max(1)),
            ..base
        }
    }
}
