//! Where readings come from.

use std::sync::Arc;
use std::{fs, io};

use rustix::time::{ClockId, clock_gettime};

/// A clock that counts microseconds. Never wall time: a wall clock can step, and a step would end or freeze leases.
pub trait Clock: Send + Sync {
    /// Which clock it is: microseconds of two clocks mean nothing to each other.
    fn id(&self) -> Arc<str>;
    /// Microseconds since that clock began. It goes on while the machine sleeps.
    fn microseconds(&self) -> u64;
    /// What the wall clock says, in Unix nanoseconds: for people and audit.
    fn wall(&self) -> u64;
}

/// CLOCK_BOOTTIME, which counts the time that a machine sleeps too, so that its leases do run out meanwhile.
#[derive(Debug, Clone)]
pub struct BootClock {
    id: Arc<str>,
}

impl BootClock {
    /// The clock of this boot, in this process's time namespace.
    pub fn new() -> io::Result<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        // Absent where the kernel has no time namespaces: then there is only one.
        let namespace = fs::read_link("/proc/self/ns/time")
            .map_or_else(|_| String::from("time:[none]"), |link| link.to_string_lossy().into_owned());
        Ok(Self { id: format!("{} {namespace}", boot.trim()).into() })
    }
}

impl Clock for BootClock {
    fn id(&self) -> Arc<str> {
        self.id.clone()
    }

    fn microseconds(&self) -> u64 {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
        seconds.saturating_mul(1_000_000).saturating_add(nanoseconds / 1_000)
    }

    fn wall(&self) -> u64 {
        let time = clock_gettime(ClockId::Realtime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_this_boot_goes_on_and_is_always_the_same_one() {
        let clock = BootClock::new().unwrap();
        let first = clock.microseconds();
        assert!(first > 0 && clock.microseconds() >= first);
        assert_eq!(clock.id(), BootClock::new().unwrap().id());
        assert!(clock.wall() > 1_700_000_000_000_000_000);
    }
}
