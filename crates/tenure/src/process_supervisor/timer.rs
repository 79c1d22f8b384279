//! The clock that leases are kept by: CLOCK_BOOTTIME goes on while the machine sleeps, as the lease does.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

pub use tenure_client::boot_microseconds as now;

/// Wakes at an instant of that clock.
#[derive(Debug)]
pub struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    /// A timer that is not set.
    #[expect(
        deprecated,
        reason = "what could go wrong is a descriptor that is closed or becomes another; one that we own is neither"
    )]
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self(AsyncFd::new(timerfd_create(TimerfdClockId::Boottime, flags)?)?))
    }

    /// Waits until it is `at`; for ever, if there is no such time.
    pub async fn wait_until(&self, at: Option<u64>) {
        let Some(at) = at else { return std::future::pending().await };
        // Zero would turn the timer off.
        let at = at.max(1);
        let nanoseconds = i64::try_from(at % 1_000_000 * 1_000).expect("less than a second");
        let value =
            Timespec { tv_sec: i64::try_from(at / 1_000_000).unwrap_or(i64::MAX), tv_nsec: nanoseconds };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
        while now() < at {
            if timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::ABSTIME, &once).is_err() {
                return;
            }
            match self.0.readable().await {
                // It stays readable until it is set anew, and whoever waits again sets it anew.
                Ok(mut guard) => guard.clear_ready(),
                Err(_) => return,
            }
        }
    }
}
