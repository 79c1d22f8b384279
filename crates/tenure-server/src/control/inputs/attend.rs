//! A device that may be unplugged: opened, listened to, and opened again when it is back.

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::port::Port;

/// How long until the first try to open it again.
const SOON: Duration = Duration::from_millis(100);
/// And at most, if it stays away.
const LATER: Duration = Duration::from_secs(2);
/// Who has been there so long is back.
const SETTLED: Duration = Duration::from_millis(500);

/// What keeps an input from being heard. It is said for as long as it lasts, and so people are told once.
#[derive(Clone, Default)]
pub(super) struct Trouble(Arc<Mutex<Option<String>>>);

impl Trouble {
    pub(super) fn said(&self) -> Option<String> {
        self.0.lock().clone()
    }

    pub(super) fn say(&self, what: String) {
        *self.0.lock() = Some(what);
    }

    pub(super) fn is_over(&self) {
        *self.0.lock() = None;
    }
}

/// Waits until nobody is to listen any more.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that whoever could say so is gone: the same.
    let _ = stop.wait_for(|is_stopped| *is_stopped).await;
}

/// Keeps a device open and listens to it with `listen`, which ends with the reason why it cannot go on.
pub(super) async fn attend<L: Future<Output = io::Error>>(
    name: &str,
    path: &Path,
    trouble: &Trouble,
    mut stop: watch::Receiver<bool>,
    open: impl Fn(&Path) -> io::Result<Port>,
    mut listen: impl FnMut(Port) -> L,
) {
    let mut wait = SOON;
    while !*stop.borrow() {
        let reason = match open(path) {
            Err(reason) => reason,
            Ok(port) => {
                let mut listening = std::pin::pin!(listen(port));
                // One that is gone as soon as it is there has not come back.
                let soon = tokio::select! {
                    reason = &mut listening => Some(reason),
                    () = tokio::time::sleep(SETTLED) => None,
                };
                match soon {
                    Some(reason) => reason,
                    None => {
                        trouble.is_over();
                        wait = SOON;
                        listening.await
                    }
                }
            }
        };
        if *stop.borrow() {
            return;
        }
        trouble.say(format!(
            "the {name} {} cannot be used: {reason}; what comes from it does nothing until it is there again, and that \
             is tried over and over",
            path.display()
        ));
        tokio::select! {
            () = stopped(&mut stop) => return,
            () = tokio::time::sleep(wait) => wait = LATER.min(wait * 2),
        }
    }
}
