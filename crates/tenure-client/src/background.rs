//! What goes on after nobody waits for it any more.

use tokio::sync::watch;

/// Counts what goes on.
#[derive(Clone)]
pub(crate) struct Background {
    count: watch::Sender<usize>,
}

/// Something goes on as long as this lives.
pub(crate) struct GoingOn(watch::Sender<usize>);

impl Background {
    pub(crate) fn begin(&self) -> GoingOn {
        self.count.send_modify(|count| *count += 1);
        GoingOn(self.count.clone())
    }

    pub(crate) async fn settle(&self) {
        // It cannot be closed: we have a sender ourselves.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Default for Background {
    fn default() -> Self {
        Self { count: watch::Sender::new(0) }
    }
}

impl Drop for GoingOn {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
