//! Which process a worker is: `worker:BOOT:NAMESPACE:PID:START`. Whoever is on the same machine can tell whether it lives.

use std::fmt;
use std::fs;
use std::io;

use tenure_core::kernel::{BootId, ProcessId};
use tenure_gate::process;

use super::process_snapshot::is_gone;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerIdentity {
    boot: BootId,
    /// In which namespace the pid counts.
    namespace: u64,
    pid: u32,
    /// When it was started, in ticks since the boot.
    started: u64,
}

impl WorkerIdentity {
    pub fn current() -> io::Result<Self> {
        let ProcessId { boot, namespace, pid, started, .. } = process::own()?;
        // A /proc of another namespace has other numbers.
        if fs::read_link("/proc/self")?.to_str() != Some(&pid.to_string()) {
            return Err(io::Error::other("/proc does not show this process"));
        }
        Ok(Self { boot, namespace, pid, started })
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix("worker:")?.split(':');
        let identity = Self {
            boot: BootId::parse(parts.next()?)?,
            namespace: parts.next()?.parse().ok()?,
            pid: parts.next()?.parse().ok()?,
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
        let pid = i32::try_from(other.pid);
        self.is_on_same_machine(other) && pid.is_ok_and(|pid| is_gone(pid, other.started))
    }
}

impl fmt::Display for WorkerIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { boot, namespace, pid, started } = self;
        write!(formatter, "worker:{boot}:{namespace}:{pid}:{started}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER_BOOT: &str = "00000000-0000-0000-0000-000000000000";

    #[test]
    fn worker_identity_tells_whether_the_process_is_alive() {
        let own = WorkerIdentity::current().unwrap();
        assert_eq!(WorkerIdentity::parse(&own.to_string()).as_ref(), Some(&own));
        assert!(!own.is_known_dead(&own));
        let before = WorkerIdentity { started: own.started - 1, ..own };
        assert!(own.is_known_dead(&before), "the number is somebody else's now");
        let elsewhere = WorkerIdentity { boot: BootId::parse(OTHER_BOOT).unwrap(), ..before };
        assert!(!own.is_known_dead(&elsewhere));
        assert!(!own.is_known_dead(&WorkerIdentity { namespace: 1, ..before }));
    }

    #[test]
    fn invalid_worker_identity_is_not_parsed() {
        let name = |rest: &str| WorkerIdentity::parse(&format!("worker:{OTHER_BOOT}{rest}"));
        assert!(name(":1:2:3").is_some());
        for rest in [":1:2", ":1:2:3:4", ":1:x:3", "", "0:1:2:3"] {
            assert_eq!(name(rest), None, "{rest}");
        }
        for text in ["", "worker:another-boot:1:2:3", "ann", &format!("work:{OTHER_BOOT}:1:2:3")] {
            assert_eq!(WorkerIdentity::parse(text), None, "{text}");
        }
    }
}
