//! Asking again until there is an answer.

use std::time::Duration;

use tokio::sync::watch;

use super::asked::Trouble;
use crate::message::tell;

/// Between two attempts: at first, and at most.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];

/// Told once: everything is to end. It can be cloned.
pub type Stop = watch::Receiver<bool>;

/// Waits until everything is to end. Whoever could say so and is gone says so thereby.
pub async fn told(stop: &Stop) {
    let mut stop = stop.clone();
    let _ = stop.wait_for(|is_told| *is_told).await;
}

/// Attempts at one request.
pub struct Attempts {
    what: &'static str,
    pause: Duration,
    is_said: bool,
}

impl Attempts {
    /// None yet.
    pub fn new(what: &'static str) -> Self {
        Self { what, pause: PAUSES[0], is_said: false }
    }

    /// The answer of an attempt. Nothing: nobody answered, which is said once, and it is time to ask again.
    pub async fn settle<T>(&mut self, answer: Result<T, Trouble>) -> Option<Result<T, Trouble>> {
        let Self { what, pause, is_said } = self;
        let Err(Trouble::Passing(why)) = answer else {
            if *is_said {
                tell(&format!("tenure: {what} works again\n"));
            }
            return Some(answer);
        };
        if !std::mem::replace(is_said, true) {
            tell(&format!("tenure: {what} does not work now, and is tried again: {why}\n"));
        }
        tokio::time::sleep(*pause).await;
        *pause = (*pause * 2).min(PAUSES[1]);
        None
    }
}

/// Asks until somebody answers. What is done for each attempt stands in place, because a closure that borrows what it
/// asks with could not go to another thread.
macro_rules! insist {
    ($what:literal, $attempt:expr) => {{
        let mut attempts = $crate::worker::insist::Attempts::new($what);
        loop {
            if let Some(answer) = attempts.settle($attempt).await {
                break answer;
            }
        }
    }};
}
pub(super) use insist;
