//! What goes on after nobody waits for it any more.

use tokio::sync::watch;

/// Counts what goes on.
#[derive(Clone)]
pub(crate) struct TaskTracker {
    count: watch::Sender<usize>,
}

/// Something goes on as long as this lives.
pub(crate) struct TaskGuard(watch::Sender<usize>);

impl TaskTracker {
    pub(crate) fn track(&self) -> TaskGuard {
        self.count.send_modify(|count| *count += 1);
        TaskGuard(self.count.clone())
    }

    pub(crate) async fn wait(&self) {
        // It cannot be closed: we have a sender ourselves.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Default for TaskTracker {
    fn default() -> Self {
        Self { count: watch::Sender::new(0) }
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
