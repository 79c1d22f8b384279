//! Stops the server on request, or when it is not in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use crate::app::App;

/// How often is looked whether anybody needs the server.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Who asked when, and whether somebody wants the server to stop.
pub(crate) struct IdleShutdown {
    is_requested: watch::Sender<bool>,
    requests: AtomicU64,
}

impl Default for IdleShutdown {
    fn default() -> Self {
        Self { is_requested: watch::Sender::new(false), requests: AtomicU64::new(0) }
    }
}

impl IdleShutdown {
    /// Somebody wants the server to stop.
    pub(super) fn request_shutdown(&self) {
        self.is_requested.send_replace(true);
    }

    pub(super) fn record_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns when somebody wants the server to stop.
    pub(crate) async fn wait_for_request(&self) {
        let _ = self.is_requested.subscribe().wait_for(|is_requested| *is_requested).await;
    }
}

/// Asks for the stop once nothing was held and nobody asked anything for so long, if that is configured.
pub(crate) async fn run(app: Arc<App>) {
    let Some(patience) = app.files.settings.stop_when_idle_ms.map(Duration::from_millis) else { return };
    let watched = async {
        let (mut idle, mut before) = (Duration::ZERO, 0);
        loop {
            let every = CHECK_INTERVAL.min(patience);
            tokio::time::sleep(every).await;
            let requests = app.files.idle_shutdown.requests.load(Ordering::Relaxed);
            let is_in_use = app.registrar.read(|state| {
                state.lease_count() > 0 || state.has_waiters() || state.file_sessions().next().is_some()
            });
            idle = if is_in_use || requests != before { Duration::ZERO } else { idle + every };
            before = requests;
            if idle >= patience {
                return app.files.idle_shutdown.request_shutdown();
            }
        }
    };
    tokio::select! {
        () = watched => {}
        () = app.wait_for_stop() => {}
    }
}
