//! Identifies processes, and tells whether they live.

use std::fs;
use std::io;
use std::sync::OnceLock;

use rustix::io::Errno;
use tenure_core::kernel::{BootId, ProcessId};

use super::proc_table::{ProcEntry, ProcessStat, numeric_entries};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Liveness {
    Alive,
    /// It stands still (Ctrl-Z, a debugger), and can go on at any time. So it keeps what it has.
    Suspended,
    /// It ended. What has its pid now is another one.
    Dead,
}

/// The process that has this pid now. An error if there is none.
pub fn of(pid: u32) -> io::Result<ProcessId> {
    let entry = ProcEntry::of(pid)?;
    from_entry(pid, &entry, &entry.stat()?)
}

pub fn own() -> io::Result<ProcessId> {
    of(std::process::id())
}

pub(super) fn from_entry(pid: u32, entry: &ProcEntry, stat: &ProcessStat) -> io::Result<ProcessId> {
    let namespace = namespace(entry).or_else(|_| namespace(&ProcEntry::of(std::process::id())?))?;
    Ok(ProcessId { boot: boot()?, namespace, pid, started: stat.started, user: user(entry)? })
}

/// Whether it lives. What cannot be looked at, because this process has no descriptors left or may not look, is not taken
/// for dead: that would take from the living.
pub fn liveness(process: &ProcessId) -> Liveness {
    match find_entry(process) {
        Ok(None) => Liveness::Dead,
        Ok(Some((_, line))) if line.is_dead() && !has_running_threads(process.pid) => Liveness::Dead,
        Ok(Some((_, line))) if line.is_stopped() => Liveness::Suspended,
        Ok(Some(_)) | Err(_) => Liveness::Alive,
    }
}

/// Whether `process` was started by `ancestor`, or by one whom that started, and so on. It is not its own descendant.
pub fn is_descendant(process: &ProcessId, ancestor: &ProcessId) -> bool {
    let is_there = matches!(find_entry(process), Ok(Some(_)));
    is_there && super::ancestors(process.pid).iter().any(|above| above.is_same(ancestor))
}

/// What the system tells of a process. `None` if it is gone for certain.
pub(super) fn find_entry(process: &ProcessId) -> io::Result<Option<(ProcEntry, ProcessStat)>> {
    if boot()? != process.boot {
        return Ok(None);
    }
    let found = ProcEntry::of(process.pid).and_then(|entry| entry.stat().map(|line| (entry, line)));
    match found {
        Ok((entry, line)) => Ok((line.started == process.started).then_some((entry, line))),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A process whose first thread has ended looks like one that is over. While other threads run, it is not.
fn has_running_threads(pid: u32) -> bool {
    let threads = numeric_entries(&format!("/proc/{pid}/task"));
    threads.into_iter().filter(|thread| *thread != pid).any(|thread| {
        let line = fs::read(format!("/proc/{pid}/task/{thread}/stat")).ok();
        line.and_then(|line| ProcessStat::parse(&line)).is_some_and(|line| !line.is_dead())
    })
}

/// Whether this says that there is no such process: not found, or gone while it was looked at.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

/// The id of this boot. It cannot change while this process runs.
fn boot() -> io::Result<BootId> {
    static BOOT: OnceLock<BootId> = OnceLock::new();
    if let Some(boot) = BOOT.get() {
        return Ok(*boot);
    }
    let boot = BootId::parse(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim());
    let boot =
        boot.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the id of this boot is no UUID"))?;
    Ok(*BOOT.get_or_init(|| boot))
}

/// The number in `pid:[4026531836]`.
fn namespace(entry: &ProcEntry) -> io::Result<u64> {
    let link = entry.link("ns/pid")?;
    let number = str::from_utf8(&link)
        .ok()
        .and_then(|link| link.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok());
    number.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a process has no pid namespace"))
}

/// The real user, which a program that runs with another one's rights keeps.
fn user(entry: &ProcEntry) -> io::Result<u32> {
    let status = entry.read("status")?;
    let text = String::from_utf8_lossy(&status);
    let line = text.lines().find_map(|line| line.strip_prefix("Uid:"));
    let number = line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
    number.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a process belongs to nobody"))
}
