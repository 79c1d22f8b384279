//! Which process a worker is: `worker:BOOT:NAMESPACE:PID:START`. Whoever is on the same machine can tell whether it lives.

use std::fmt;
use std::fs;
use std::io;

use rustix::process::getpid;

use super::process_snapshot::{ProcessSnapshot, is_gone};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerIdentity {
    /// Since when the machine runs, as a name.
    boot: String,
    /// In which namespace the number counts.
    namespace: String,
    number: i32,
    /// When it was started, in ticks since the machine was.
    started: u64,
}

impl WorkerIdentity {
    pub fn current() -> io::Result<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        let link = fs::read_link("/proc/self/ns/pid")?;
        let link = link.to_string_lossy();
        let namespace: String = link.chars().filter(char::is_ascii_digit).collect();
        let unreadable = || io::Error::other("/proc does not show this process");
        let number = getpid().as_raw_nonzero().get();
        let process = ProcessSnapshot::find(number).ok_or_else(unreadable)?;
        // A /proc of another namespace has other numbers.
        let is_shown = fs::read_link("/proc/self")?.to_str() == Some(&number.to_string());
        if !is_shown || boot.is_empty() || namespace.is_empty() {
            return Err(unreadable());
        }
        Ok(Self { boot, namespace, number, started: process.started })
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix("worker:")?.split(':');
        let identity = Self {
            boot: parts.next()?.to_owned(),
            namespace: parts.next()?.to_owned(),
            number: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(identity)
    }

    /// Whether both are on one machine since it was started, and see the same processes.
    pub fn is_on_same_machine(&self, other: &Self) -> bool {
        self.boot == other.boot && self.namespace == other.namespace
    }

    /// Whether that worker is beside us and surely gone. Of one on another machine nobody here knows.
    pub fn is_known_dead(&self, other: &Self) -> bool {
        self.is_on_same_machine(other) && is_gone(other.number, other.started)
    }
}

impl fmt::Display for WorkerIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { boot, namespace, number, started } = self;
        write!(formatter, "worker:{boot}:{namespace}:{number}:{started}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_identity_tells_whether_the_process_is_alive() {
        let own = WorkerIdentity::current().unwrap();
        assert_eq!(WorkerIdentity::parse(&own.to_string()).as_ref(), Some(&own));
        assert!(!own.is_known_dead(&own));
        let before = WorkerIdentity { started: own.started - 1, ..own.clone() };
        assert!(own.is_known_dead(&before), "the number is somebody else's now");
        let elsewhere = WorkerIdentity { boot: "b".to_owned(), ..before.clone() };
        assert!(!own.is_known_dead(&elsewhere));
        assert!(!own.is_known_dead(&WorkerIdentity { namespace: "1".to_owned(), ..before }));
    }

    #[test]
    fn invalid_worker_identity_is_not_parsed() {
        for text in ["", "worker:a:1:2", "worker:a:1:2:3:4", "worker:a:1:x:3", "ann", "work:a:1:2:3"] {
            assert_eq!(WorkerIdentity::parse(text), None, "{text}");
        }
    }
}
