//! What the system tells about a process in `/proc`.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat};

/// The folder of one process. It stays that one's: when the process is gone, nothing can be read through it, even if its pid
/// was used again.
pub(super) struct ProcEntry(OwnedFd);

impl ProcEntry {
    /// Opens the folder of the process that has this pid now.
    pub fn of(pid: u32) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, format!("/proc/{pid}"), flags, Mode::empty())?))
    }

    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let file = openat(&self.0, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut text = Vec::new();
        io::Read::read_to_end(&mut fs::File::from(file), &mut text)?;
        Ok(text)
    }

    /// A link in it, as text.
    pub fn link(&self, name: &str) -> io::Result<Vec<u8>> {
        Ok(readlinkat(&self.0, name, Vec::new())?.into_bytes())
    }

    /// Its line in the table of processes.
    pub fn stat(&self) -> io::Result<ProcessStat> {
        let text = self.read("stat")?;
        ProcessStat::parse(&text)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a process says nothing of itself"))
    }
}

/// What `stat` says, as far as it is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessStat {
    pub name: String,
    /// One letter for what it does.
    pub state: u8,
    pub parent: u32,
    /// The group of processes that it is in.
    pub group: i32,
    /// The group that its terminal is given to; negative if it has no terminal.
    pub foreground: i32,
    /// When it started, in ticks since the boot.
    pub started: u64,
}

impl ProcessStat {
    /// Of the process or thread with this number; nothing if there is none.
    pub fn of(number: u32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{number}/stat")).ok()?)
    }

    /// The name stands in parentheses and may hold any character, parentheses and blanks too. So the last one ends it.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let begin = text.iter().position(|byte| *byte == b'(')?;
        let end = text.iter().rposition(|byte| *byte == b')')?;
        let name = String::from_utf8_lossy(text.get(begin + 1..end)?).into_owned();
        // The third field is the first one here.
        let mut fields = str::from_utf8(&text[end + 1..]).ok()?.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        // The session and the terminal are between them.
        let foreground = fields.nth(2)?.parse().ok()?;
        let started = fields.nth(22 - 9)?.parse().ok()?;
        Some(Self { name, state, parent, group, foreground, started })
    }

    /// Whether it is over: it ended, and only its parent does not know yet.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Whether it stands still until somebody lets it go on.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }
}

/// When the process or thread with this number started, in ticks since the boot; nothing if there is none.
pub fn start_time(number: u32) -> Option<u64> {
    ProcessStat::of(number).map(|stat| stat.started)
}

/// The first process of the job at a terminal to which this process belongs, if that job is the one that the terminal is given
/// to; nothing otherwise.
pub fn foreground_process_group(process: u32) -> Option<u32> {
    let ProcessStat { group, foreground, .. } = ProcessStat::of(process)?;
    u32::try_from(group).ok().filter(|_| group == foreground && group > 0)
}

/// The process that this thread is of; nothing if there is no such thread.
pub fn process_of_thread(thread: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

pub(super) fn all_pids() -> Vec<u32> {
    numeric_entries("/proc")
}

/// The entries of a folder that are numbers.
pub(super) fn numeric_entries(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_names_may_contain_any_character() {
        let rest = " S 4150 4170 4170 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 500000 2 3";
        for name in ["sh", "a b", "x) S 1 (y", "((", "tmux: server", "\n"] {
            let stat = ProcessStat::parse(format!("4170 ({name}){rest}").as_bytes()).unwrap();
            let (name, state, group, foreground) = (name.into(), b'S', 4170, -1);
            assert_eq!(stat, ProcessStat { name, state, parent: 4150, group, foreground, started: 500_000 });
        }
        assert!(
            ProcessStat::parse(b"").is_none()
                && ProcessStat::parse(b"1 (x) S").is_none()
                && ProcessStat::parse(b")(").is_none()
        );
    }
}
