//! Wakes the writer: for a request, or at a deadline.
//!
//! Time is CLOCK_BOOTTIME. A timeout of a condition variable stands still while the machine sleeps, and a lease that
//! ended meanwhile would be announced late.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

#[derive(Debug)]
pub(crate) struct Waker {
    event: OwnedFd,
    timer: OwnedFd,
    /// Somebody sleeps. While nobody does, ringing costs nothing.
    is_asleep: AtomicBool,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Waker> {
        let rung = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let timer_flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Boottime, timer_flags)?;
        Ok(Waker { event: rung, timer, is_asleep: AtomicBool::new(false) })
    }

    /// Says that [`Self::sleep`] follows. Whoever rings after this ends that sleep; what was done before must be
    /// looked for once more in between.
    pub(crate) fn prepare_sleep(&self) {
        self.is_asleep.store(true, Ordering::SeqCst);
    }

    /// There was something to do after all.
    pub(crate) fn cancel_sleep(&self) {
        self.is_asleep.store(false, Ordering::SeqCst);
    }

    /// Sleeps until [`Self::wake`], at most for `timeout`; without a timeout, until [`Self::wake`].
    pub(crate) fn sleep(&self, timeout: Option<Duration>) {
        // Zero would turn the timer off.
        let timeout = timeout.map(|timeout| timeout.max(Duration::from_nanos(1)));
        let value = timeout.and_then(|timeout| Timespec::try_from(timeout).ok()).unwrap_or_default();
        let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
        let is_set = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once).is_ok();
        let mut descriptors =
            [PollFd::new(&self.event, PollFlags::IN), PollFd::new(&self.timer, PollFlags::IN)];
        // Without a timer, look again soon: late notices, but no lost ones.
        let fallback = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        // An interruption is a reason to look, too.
        let _ = poll(&mut descriptors, if is_set { None } else { Some(&fallback) });
        self.cancel_sleep();
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.event, &mut count);
    }

    /// Ends a sleep, if there is one.
    pub(crate) fn wake(&self) {
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            // It fails only if it was rung 2^64 times and nobody woke.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_wake_between_prepare_and_sleep_ends_the_sleep() {
        let waker = Waker::new().unwrap();
        waker.prepare_sleep();
        waker.wake();
        waker.sleep(None);
    }

    #[test]
    fn sleep_ends_on_wake_from_another_thread_and_on_timeout() {
        let waker = Arc::new(Waker::new().unwrap());
        waker.prepare_sleep();
        let other = waker.clone();
        let thread = std::thread::spawn(move || other.wake());
        waker.sleep(None);
        thread.join().unwrap();
        for timeout in [Duration::ZERO, Duration::from_millis(3)] {
            waker.prepare_sleep();
            waker.sleep(Some(timeout));
        }
    }
}
