//! Starts git. Nothing else in this crate does.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use rustix::time::{ClockId, clock_gettime};

use super::GitError;

/// What git may be asked. Each of these only reads; what is not here is not run.
const READING: &[&str] = &["cat-file", "diff", "diff-tree", "rev-parse", "status"];

/// Where the person keeps their settings. Every other `GIT_…` variable is about the command that a hook runs in.
const KEPT: &[&str] = &["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"];

/// How long git may take. A hook waits for it.
const LIMIT: Duration = Duration::from_secs(10);

/// Lists of paths are read up to here.
pub(super) const MOST_BYTES: usize = 64 << 20;

/// Complaints are read up to here; the rest is thrown away.
const MOST_COMPLAINTS: usize = 16 << 10;

/// One question to git.
pub(super) struct Question<'a> {
    pub root: &'a Path,
    pub subcommand: &'static str,
    pub arguments: Vec<OsString>,
    /// The index to look at, where it is not the one of the repository: a partial commit has its own.
    pub index: Option<&'a Path>,
    /// How much of an answer is read.
    pub most: usize,
}

/// What git answered.
pub(super) struct Said {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl<'a> Question<'a> {
    /// Asks `subcommand` with these arguments, in the tree at `root`.
    pub fn new<A: Into<OsString>>(
        root: &'a Path,
        subcommand: &'static str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { root, subcommand, arguments, index: None, most: MOST_BYTES }
    }

    /// What git answers, if it ends well.
    pub fn answer(&self) -> Result<Vec<u8>, GitError> {
        let said = self.ask()?;
        if said.status.success() { Ok(said.stdout) } else { Err(self.refusal(&said)) }
    }

    /// What git answers, or nothing if it says no quietly (code 1): for questions about what may not be there.
    pub fn answer_if_any(&self) -> Result<Option<Vec<u8>>, GitError> {
        let said = self.ask()?;
        match said.status.code() {
            Some(0) => Ok(Some(said.stdout)),
            Some(1) => Ok(None),
            _ => Err(self.refusal(&said)),
        }
    }

    fn ask(&self) -> Result<Said, GitError> {
        // `diff` and its like write into a file if asked to.
        let options = self.arguments.iter().take_while(|argument| *argument != "--");
        let writes = options.into_iter().any(|option| option.as_encoded_bytes().starts_with(b"--output"));
        if !READING.contains(&self.subcommand) || writes {
            return Err(GitError::NotForReading(self.subcommand));
        }
        let mut command = Command::new("git");
        // No lock is taken for the sake of speed, no monitor is started, nothing is asked, no pattern is a pattern.
        command.args([
            "--no-optional-locks",
            "--no-pager",
            "--literal-pathspecs",
            "-c",
            "core.fsmonitor=false",
        ]);
        command.arg("-C").arg(self.root).arg(self.subcommand).args(&self.arguments);
        for (name, _) in std::env::vars_os() {
            let is_kept = KEPT.iter().any(|kept| name == *kept);
            if name.as_encoded_bytes().starts_with(b"GIT_") && !is_kept {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0");
        if let Some(index) = self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        hear(command, self.subcommand, self.most, LIMIT)
    }

    fn refusal(&self, said: &Said) -> GitError {
        let text = String::from_utf8_lossy(&said.stderr);
        if text.contains("not a git repository") {
            return GitError::NotARepository;
        }
        if text.contains("must be run in a work tree") {
            return GitError::Bare;
        }
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        let said = line.chars().filter(|letter| !letter.is_control()).take(300).collect();
        GitError::Failed { subcommand: self.subcommand, said }
    }
}

/// Runs `command` to its end, or ends it with everybody whom it started. It is reaped in any case.
fn hear(
    mut command: Command,
    subcommand: &'static str,
    most: usize,
    limit: Duration,
) -> Result<Said, GitError> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let failed = |error: io::Error| GitError::Failed { subcommand, said: error.to_string() };
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => GitError::Missing,
        _ => failed(error),
    })?;
    let mut said = Collected::default();
    let outcome = collect(&mut child, &mut said, most, limit);
    if !matches!(outcome, Ok(Outcome::Done)) {
        // It may be gone already. Its helpers (a filter, say) are in its group.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    }
    let status = child.wait().map_err(failed)?;
    match outcome.map_err(failed)? {
        Outcome::Done => Ok(Said { status, stdout: said.stdout, stderr: said.stderr }),
        Outcome::TooSlow => Err(GitError::TooSlow { subcommand, seconds: limit.as_secs() }),
        Outcome::TooMuch => Err(GitError::TooMuch { subcommand, most }),
    }
}

enum Outcome {
    Done,
    TooSlow,
    TooMuch,
}

#[derive(Default)]
struct Collected {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Reads both streams as they come, then waits for the end of the process, all within `limit`.
fn collect(child: &mut Child, said: &mut Collected, most: usize, limit: Duration) -> io::Result<Outcome> {
    let deadline = now() + limit;
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let mut buffer = vec![0; 64 << 10];
    while stdout.is_some() || stderr.is_some() {
        let streams = [stdout.as_ref().map(AsFd::as_fd), stderr.as_ref().map(AsFd::as_fd)];
        let Some([out, err]) = wait_for(streams, deadline)? else { return Ok(Outcome::TooSlow) };
        if out && !read_some(&mut stdout, &mut buffer, &mut said.stdout)? {
            stdout = None;
        }
        if err && !read_some(&mut stderr, &mut buffer, &mut said.stderr)? {
            stderr = None;
        }
        said.stderr.truncate(MOST_COMPLAINTS);
        if said.stdout.len() > most {
            return Ok(Outcome::TooMuch);
        }
    }
    let ended = wait_for([Some(process.as_fd()), None], deadline)?;
    Ok(if ended.is_some() { Outcome::Done } else { Outcome::TooSlow })
}

/// Which of them have something to say, or nothing if the time is up.
fn wait_for(streams: [Option<BorrowedFd<'_>>; 2], deadline: Duration) -> io::Result<Option<[bool; 2]>> {
    let mut waiting: Vec<_> =
        streams.iter().flatten().map(|stream| PollFd::from_borrowed_fd(*stream, PollFlags::IN)).collect();
    loop {
        let left = deadline.saturating_sub(now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut waiting, Some(&left)) {
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(0) => return Ok(None),
            Ok(_) => break,
        }
    }
    let mut answers = waiting.iter().map(|one| !one.revents().is_empty());
    Ok(Some(streams.map(|stream| stream.is_some() && answers.next() == Some(true))))
}

/// Takes what is there. False at the end.
fn read_some(stream: &mut Option<impl Read>, buffer: &mut [u8], into: &mut Vec<u8>) -> io::Result<bool> {
    let Some(stream) = stream else { return Ok(false) };
    match stream.read(buffer) {
        Ok(0) => Ok(false),
        Ok(count) => {
            into.extend_from_slice(&buffer[..count]);
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
        Err(error) => Err(error),
    }
}

/// For one limit within one call; nothing is decided by it.
fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    // S4-6, S4-40, S4-41, S4-60
    #[test]
    fn what_could_write_is_not_run() {
        let folder = tempfile::tempdir().unwrap();
        for subcommand in [
            "add",
            "commit",
            "stash",
            "checkout",
            "switch",
            "restore",
            "reset",
            "clean",
            "rm",
            "mv",
            "merge",
            "rebase",
            "am",
            "apply",
            "cherry-pick",
            "revert",
            "update-index",
            "update-ref",
            "symbolic-ref",
            "commit-tree",
            "write-tree",
            "hash-object",
            "read-tree",
            "checkout-index",
            "config",
            "gc",
            "init",
            "fetch",
            "push",
            "pull",
            "tag",
            "branch",
            "worktree",
            "notes",
            "!sh",
            "-c",
        ] {
            let asked = Question::new(folder.path(), subcommand, ["--help"]).answer();
            assert!(
                matches!(asked, Err(GitError::NotForReading(name)) if name == subcommand),
                "{subcommand}"
            );
        }
        let asked =
            Question::new(folder.path(), "diff", ["--output=x", "--no-index", "/dev/null", "/etc/passwd"]);
        assert!(matches!(asked.answer(), Err(GitError::NotForReading("diff"))));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn whoever_takes_too_long_is_ended_with_its_helpers_and_reaped() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.current_dir(folder.path()).args(["-c", "sleep 600 & echo $! $$ > pids; wait"]);
        let heard = hear(command, "status", 100, Duration::from_millis(500));
        assert!(matches!(heard, Err(GitError::TooSlow { subcommand: "status", .. })));
        let pids = std::fs::read_to_string(folder.path().join("pids")).unwrap();
        let pids: Vec<_> =
            pids.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect();
        assert_eq!(pids.len(), 2);
        for pid in pids {
            // Gone, or about to be: its pidfd tells the moment.
            let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            let ended = wait_for([Some(process.as_fd()), None], now() + LIMIT).unwrap();
            assert!(ended.is_some(), "{pid:?} still runs");
        }
    }

    #[test]
    fn an_answer_is_whole_or_an_error() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let heard = hear(shell("printf %1000s; printf %100000s >&2"), "diff", 1000, LIMIT).unwrap();
        assert_eq!((heard.stdout.len(), heard.stderr.len()), (1000, MOST_COMPLAINTS));
        let heard = hear(shell("printf %1001s; sleep 600"), "diff", 1000, LIMIT);
        assert!(matches!(heard, Err(GitError::TooMuch { most: 1000, .. })));
    }
}
