//! A device that may be unplugged: opened, listened to, and opened again when it is back.

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::device_file::DeviceFile;

/// How long until the first try to open it again.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);
/// And at most, if it stays away.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(2);
/// Who has been there so long is back.
const STABLE_AFTER: Duration = Duration::from_millis(500);

/// What keeps an input from being heard. It is said for as long as it lasts, and so people are told once.
#[derive(Clone, Default)]
pub(super) struct InputHealth(Arc<Mutex<Option<String>>>);

impl InputHealth {
    pub(super) fn message(&self) -> Option<String> {
        self.0.lock().clone()
    }

    pub(super) fn report(&self, what: String) {
        *self.0.lock() = Some(what);
    }

    pub(super) fn clear(&self) {
        *self.0.lock() = None;
    }
}

/// Waits until nobody is to listen any more.
pub(super) async fn wait_for_stop(stop: &mut watch::Receiver<bool>) {
    // An error means that whoever could say so is gone: the same.
    let _ = stop.wait_for(|is_stopped| *is_stopped).await;
}

/// Keeps a device open and listens to it with `listen`, which ends with the reason why it cannot go on.
pub(super) async fn run_with_reconnect<L: Future<Output = io::Error>>(
    name: &str,
    path: &Path,
    health: &InputHealth,
    mut stop: watch::Receiver<bool>,
    open: impl Fn(&Path) -> io::Result<DeviceFile>,
    mut listen: impl FnMut(DeviceFile) -> L,
) {
    let mut wait = FIRST_RETRY_DELAY;
    while !*stop.borrow() {
        let reason = match open(path) {
            Err(reason) => reason,
            Ok(port) => {
                let mut listening = std::pin::pin!(listen(port));
                // One that is gone as soon as it is there has not come back.
                let soon = tokio::select! {
                    reason = &mut listening => Some(reason),
                    () = tokio::time::sleep(STABLE_AFTER) => None,
                };
                match soon {
                    Some(reason) => reason,
                    None => {
                        health.clear();
                        wait = FIRST_RETRY_DELAY;
                        listening.await
                    }
                }
            }
        };
        if *stop.borrow() {
            return;
        }
        health.report(format!(
            "the {name} {} cannot be used: {reason}; what comes from it does nothing until it is there again, and that \
             is tried over and over",
            path.display()
        ));
        tokio::select! {
            () = wait_for_stop(&mut stop) => return,
            () = tokio::time::sleep(wait) => wait = MAX_RETRY_DELAY.min(wait * 2),
        }
    }
}
