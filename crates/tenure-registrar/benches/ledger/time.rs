//! Time that passes, CPU that is used, and a clock that can be held.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tenure_registrar::runtime::{BootClock, Clock};

/// How long `work` takes, waiting for the disk included.
pub fn measure_duration<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let before = read(ClockId::Monotonic);
    let done = work();
    (done, read(ClockId::Monotonic).saturating_sub(before))
}

/// The CPU time of this whole process.
pub fn cpu_time() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// The time that passes.
pub fn monotonic_now() -> Duration {
    read(ClockId::Monotonic)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let part = |number: i64| u64::try_from(number).expect("time does not go back");
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}

/// A clock that stands still until it is let go: so that many leases end at the very same tick.
pub struct PausedClock {
    clock: BootClock,
    held_at: u64,
    /// How far behind the real one it goes once it is let go.
    behind: AtomicU64,
}

impl PausedClock {
    pub fn new() -> Result<Arc<PausedClock>, String> {
        let clock = BootClock::new().map_err(|error| error.to_string())?;
        let held_at = clock.microseconds();
        Ok(Arc::new(PausedClock { clock, held_at, behind: AtomicU64::new(u64::MAX) }))
    }

    /// From now on time passes.
    pub fn resume(&self) {
        self.behind.store(self.clock.microseconds() - self.held_at, Ordering::SeqCst);
    }
}

impl Clock for PausedClock {
    fn id(&self) -> Arc<str> {
        self.clock.id()
    }

    fn microseconds(&self) -> u64 {
        match self.behind.load(Ordering::SeqCst) {
            u64::MAX => self.held_at,
            behind => self.clock.microseconds() - behind,
        }
    }

    fn wall_nanoseconds(&self) -> u64 {
        self.clock.wall_nanoseconds()
    }
}
