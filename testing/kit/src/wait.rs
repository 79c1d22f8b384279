//! Real time: the one place of the tests that reads a clock.

use std::future::{Future, IntoFuture};
use std::time::{Duration, Instant};

/// The longest that anything in these tests takes. It ends what hangs, and judges no speed.
pub const LIMIT: Duration = Duration::from_secs(30);

/// The time of this process's clock.
#[expect(clippy::disallowed_methods, reason = "how long a response takes is what is tested")]
pub fn now() -> Instant {
    Instant::now()
}

/// Lets time pass, where that is what the test is about.
#[expect(clippy::disallowed_methods, reason = "the time that passes is what is tested")]
pub fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}

/// Polls until the condition holds.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = now() + LIMIT;
    while !holds() {
        assert!(now() < end, "{what}: not within {LIMIT:?}");
        sleep(Duration::from_millis(10));
    }
}

/// Fails if the condition stops holding before the time has passed.
#[track_caller]
pub fn assert_stays(what: &str, duration: Duration, mut holds: impl FnMut() -> bool) {
    let end = now() + duration;
    while now() < end {
        assert!(holds(), "{what}: no longer");
        sleep(Duration::from_millis(50));
    }
}

/// Polls until the condition holds, in a task.
pub async fn eventually<F: Future<Output = bool>>(holds: impl Fn() -> F) {
    let polled = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    with_timeout(polled).await;
}

/// Fails if a future hangs.
pub async fn with_timeout<T>(awaited: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(2 * LIMIT, awaited).await.expect("it hangs")
}
