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
    fn wall_nanoseconds(&self) -> u64;
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
        // The number of a namespace is given out again, as soon as it is gone, to one that may count otherwise.
        let offsets = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        Ok(Self { id: format!("{} {namespace}{}", boot.trim(), namespace_offset(&offsets)).into() })
    }
}

/// By how much a time namespace is ahead of the machine; nothing where it is not.
fn namespace_offset(offsets: &str) -> String {
    let mut lines = offsets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    match lines.find(|words| words.first() == Some(&"boottime")).as_deref() {
        Some([_, seconds, nanoseconds]) if (*seconds, *nanoseconds) != ("0", "0") => {
            format!(" {seconds}s {nanoseconds}ns ahead")
        }
        _ => String::new(),
    }
}

/// What CLOCK_BOOTTIME says, in microseconds.
pub fn boot_microseconds() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000).saturating_add(nanoseconds / 1_000)
}

impl Clock for BootClock {
    fn id(&self) -> Arc<str> {
        self.id.clone()
    }

    fn microseconds(&self) -> u64 {
        boot_microseconds()
    }

    fn wall_nanoseconds(&self) -> u64 {
        let time = clock_gettime(ClockId::Realtime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_clock_advances_and_keeps_its_id() {
        let clock = BootClock::new().unwrap();
        let first = clock.microseconds();
        assert!(first > 0 && clock.microseconds() >= first);
        assert_eq!(clock.id(), BootClock::new().unwrap().id());
        assert!(clock.wall_nanoseconds() > 1_700_000_000_000_000_000);
    }

    #[test]
    fn a_time_namespace_offset_is_part_of_the_clock_id() {
        let offsets = |boottime: &str| format!("monotonic           7         0\nboottime {boottime}\n");
        assert_eq!(namespace_offset(&offsets("           0         0")), "");
        assert_eq!(namespace_offset(&offsets("     1000000         5")), " 1000000s 5ns ahead");
        assert_eq!(namespace_offset(&offsets("        -300         0")), " -300s 0ns ahead");
        assert_eq!(namespace_offset(""), "");
    }
}
