//! Real time, for stories over real sockets: the one place here that looks at a clock.

use std::time::{Duration, Instant};

/// Lets time pass, where that is what the story is about.
#[expect(clippy::disallowed_methods, reason = "the time that passes is what is tried")]
pub fn pass(time: Duration) {
    std::thread::sleep(time);
}

/// How long something takes.
#[derive(Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "what a client counts is compared with what it is told")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    #[expect(clippy::disallowed_methods, reason = "what a client counts is compared with what it is told")]
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Waits until this is so; it is not so at once.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Stopwatch::start();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "not {what}");
        pass(Duration::from_millis(5));
    }
}
