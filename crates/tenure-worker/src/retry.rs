//! Asking again until there is an answer.

use std::time::Duration;

use tokio::sync::watch;

use super::requests::WorkerError;

/// Between two attempts: at first, and at most.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

/// Told once: everything is to end. It can be cloned.
pub type ShutdownReceiver = watch::Receiver<bool>;

/// Waits until everything is to end. Whoever could say so and is gone says so thereby.
pub async fn wait_for_stop(stop: &ShutdownReceiver) {
    let mut stop = stop.clone();
    let _ = stop.wait_for(|is_stopped| *is_stopped).await;
}

/// Attempts at one request.
pub struct RetryAttempts {
    what: &'static str,
    pause: Duration,
    is_reported: bool,
}

impl RetryAttempts {
    /// None yet.
    pub fn new(what: &'static str) -> Self {
        Self { what, pause: PAUSES[0], is_reported: false }
    }

    /// The answer of an attempt. Nothing: nobody answered, which is said once, and it is time to ask again.
    pub async fn record<T>(&mut self, answer: Result<T, WorkerError>) -> Option<Result<T, WorkerError>> {
        let Self { what, pause, is_reported } = self;
        let Err(WorkerError::Transient(why)) = answer else {
            if *is_reported {
                print_stderr(&format!("tenure: {what} works again\n"));
            }
            return Some(answer);
        };
        if !std::mem::replace(is_reported, true) {
            print_stderr(&format!("tenure: {what} does not work now, and is tried again: {why}\n"));
        }
        tokio::time::sleep(*pause).await;
        *pause = (*pause * 2).min(PAUSES[1]);
        None
    }
}

/// Asks until somebody answers. What is done for each attempt stands in place, because a closure that borrows what it
/// asks with could not go to another thread.
macro_rules! retry {
    ($what:literal, $attempt:expr) => {{
        let mut attempts = $crate::retry::RetryAttempts::new($what);
        loop {
            if let Some(answer) = attempts.record($attempt).await {
                break answer;
            }
        }
    }};
}
pub(super) use retry;
use tenure_host::stderr::print_stderr;
