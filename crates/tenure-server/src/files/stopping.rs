//! Whether the server should stop: somebody said so, or nobody needs it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use crate::app::App;

/// How often is looked whether anybody needs the server.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Who asked when, and whether somebody wants the server to stop.
pub(crate) struct Stopping {
    asked: watch::Sender<bool>,
    requests: AtomicU64,
}

impl Default for Stopping {
    fn default() -> Self {
        Self { asked: watch::Sender::new(false), requests: AtomicU64::new(0) }
    }
}

impl Stopping {
    /// Somebody wants the server to stop.
    pub(super) fn ask(&self) {
        self.asked.send_replace(true);
    }

    pub(super) fn heard(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns when somebody wants the server to stop.
    pub(crate) async fn asked(&self) {
        let _ = self.asked.subscribe().wait_for(|asked| *asked).await;
    }
}

/// Asks for the stop once nothing was held and nobody asked anything for so long, if that is configured.
pub(crate) async fn when_idle(app: Arc<App>) {
    let Some(patience) = app.files.settings.stop_when_idle_ms.map(Duration::from_millis) else { return };
    let watched = async {
        let (mut idle, mut before) = (Duration::ZERO, 0);
        loop {
            let every = LOOK_EVERY.min(patience);
            tokio::time::sleep(every).await;
            let requests = app.files.stopping.requests.load(Ordering::Relaxed);
            let is_needed = app.registrar.read(|state| {
                state.live_leases() > 0 || state.has_waiters() || state.file_sessions().next().is_some()
            });
            idle = if is_needed || requests != before { Duration::ZERO } else { idle + every };
            before = requests;
            if idle >= patience {
                return app.files.stopping.ask();
            }
        }
    };
    tokio::select! {
        () = watched => {}
        () = app.stopping() => {}
    }
}
