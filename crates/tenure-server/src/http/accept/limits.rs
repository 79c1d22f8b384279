//! Limits of connections, and upgrades.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::sync::watch;

use super::stream::Stream;

/// How many open files are left for the ledger and everything else.
const RESERVED_FILES: u64 = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The most connections at once. One more is told so, and closed.
    pub connections: usize,
    /// How long a connection is kept that nobody uses.
    pub idle: Duration,
    /// How long an answer waits for a caller that takes nothing of it: after that, nobody is there any more.
    pub write_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { connections: 16_384, idle: Duration::from_secs(75), write_timeout: Duration::from_secs(30) }
    }
}

impl ConnectionLimits {
    /// As many connections as there may be and the system has files for. What it permits is taken, not only what it
    /// gives without being asked; whoever comes then is told that there is no room, and does not hang.
    pub(super) fn effective_connections(&self) -> usize {
        let mut limit = getrlimit(Resource::Nofile);
        if limit.current.is_some() && limit.current != limit.maximum {
            limit.current = limit.maximum;
            let _ = setrlimit(Resource::Nofile, limit);
        }
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        // With few files, half of them: there must be room for somebody.
        let files = files.saturating_sub(RESERVED_FILES).max(files / 2);
        self.connections.min(usize::try_from(files).unwrap_or(usize::MAX))
    }
}

/// Speaks on a connection until its end, or until the server stops. The bytes are what was read of it already.
type UpgradeHandler = Box<
    dyn FnOnce(Stream, Vec<u8>, watch::Receiver<bool>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send,
>;

/// Goes with an answer that says 101, as one of its extensions.
#[derive(Clone)]
pub(crate) struct ConnectionUpgrade(Arc<Mutex<Option<UpgradeHandler>>>);

impl ConnectionUpgrade {
    /// The connection goes on with `conversation` once the answer is sent.
    pub(crate) fn new<F>(
        conversation: impl FnOnce(Stream, Vec<u8>, watch::Receiver<bool>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let boxed: UpgradeHandler =
            Box::new(move |stream, prefix, stop| Box::pin(conversation(stream, prefix, stop)));
        Self(Arc::new(Mutex::new(Some(boxed))))
    }

    pub(super) async fn run(self, stream: Stream, prefix: Vec<u8>, stop: watch::Receiver<bool>) {
        let conversation = self.0.lock().take();
        if let Some(conversation) = conversation {
            conversation(stream, prefix, stop).await;
        }
    }
}
