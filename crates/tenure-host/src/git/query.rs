//! Starts git. Nothing else in this crate does.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use rustix::time::{ClockId, clock_gettime};

use super::GitError;
use super::changed_paths::is_read_only_subcommand;
use super::env::is_config_location;

/// Asking writes nothing and runs nothing of anybody's: no monitor, no index that is written anew since files were touched.
const FORCED_SETTINGS: [&str; 2] = ["core.fsmonitor=false", "diff.autoRefreshIndex=false"];
const NO_HOOKS: &str = "core.hooksPath=/dev/null";

/// How long git may take. A hook waits for it.
const LIMIT: Duration = Duration::from_secs(10);

/// Lists of paths are read up to here.
pub(super) const MAX_OUTPUT_BYTES: usize = 64 << 20;

static LITERAL: OnceLock<[OsString; 1]> = OnceLock::new();

pub(super) struct GitQuery<'a> {
    pub root: &'a Path,
    pub subcommand: &'static str,
    pub arguments: Vec<OsString>,
    /// The index to look at, where it is not the one of the repository: a partial commit has its own.
    pub index: Option<&'a Path>,
    /// What an agent's own git was told. Where there is no agent, the person's settings count; else nothing of git's environment
    /// gets through but this.
    pub environment: Option<&'a [(OsString, OsString)]>,
    /// Where an agent's own git is. Counts in any case.
    pub location: &'a [(OsString, OsString)],
    /// Settings that an agent made for its own git, as `name=value`.
    pub settings: &'a [OsString],
    /// How paths are read: as they are, unless somebody wrote patterns.
    pub pathspecs: &'a [OsString],
    /// Names that are asked about, where they do not fit a command line.
    pub input: Option<Vec<u8>>,
    /// How much of an answer is read.
    pub max_output_bytes: usize,
}

impl<'a> GitQuery<'a> {
    /// Asks `subcommand` with these arguments, in the tree at `root`.
    pub fn new<A: Into<OsString>>(
        root: &'a Path,
        subcommand: &'static str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self {
            root,
            subcommand,
            arguments,
            index: None,
            environment: None,
            location: &[],
            settings: &[],
            pathspecs: LITERAL.get_or_init(|| ["--literal-pathspecs".into()]),
            input: None,
            max_output_bytes: MAX_OUTPUT_BYTES,
        }
    }

    /// What git answers, if it ends well.
    pub fn output(&self) -> Result<Vec<u8>, GitError> {
        let output = self.run()?;
        if output.status.success() { Ok(output.stdout) } else { Err(self.error_from(&output)) }
    }

    /// What git answers, or nothing if it says no quietly (code 1): for questions about what may not be there.
    pub fn optional_output(&self) -> Result<Option<Vec<u8>>, GitError> {
        let output = self.run()?;
        match output.status.code() {
            Some(0) => Ok(Some(output.stdout)),
            Some(1) => Ok(None),
            _ => Err(self.error_from(&output)),
        }
    }

    fn run(&self) -> Result<ChildOutput, GitError> {
        if !is_read_only_subcommand(self.subcommand, &self.arguments) {
            return Err(GitError::NotReadOnly(self.subcommand));
        }
        let mut command = Command::new("git");
        command.args(["--no-optional-locks", "--no-pager"]).args(self.pathspecs);
        let settings = self.settings.iter().map(OsString::as_os_str);
        // `rev-parse` runs no hook, and is who says where hooks are.
        let no_hooks = (self.subcommand != "rev-parse").then_some(NO_HOOKS);
        // Ours come last, and win.
        for setting in settings.chain(FORCED_SETTINGS.into_iter().chain(no_hooks).map(OsStr::new)) {
            command.arg("-c").arg(setting);
        }
        command.arg("-C").arg(self.root).arg(self.subcommand).args(&self.arguments);
        for (name, _) in std::env::vars_os() {
            let is_gits = name.as_encoded_bytes().starts_with(b"GIT_");
            // Every other `GIT_…` variable is about the command that a hook runs in.
            let must_be_removed =
                if is_config_location(&name) { self.environment.is_some() } else { is_gits };
            if must_be_removed {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_NO_LAZY_FETCH", "1");
        let variables = self.environment.unwrap_or_default().iter().chain(self.location);
        command.envs(variables.map(|(name, value)| (name, value)));
        if let Some(index) = self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        let input = self.input.as_deref().map(memory_file).transpose();
        let input = input
            .map_err(|error| GitError::Failed { subcommand: self.subcommand, message: error.to_string() })?;
        command.stdin(input.map_or_else(Stdio::null, Stdio::from));
        run_bounded(command, self.subcommand, self.max_output_bytes, LIMIT)
    }

    fn error_from(&self, output: &ChildOutput) -> GitError {
        let text = String::from_utf8_lossy(&output.stderr);
        if text.contains("not a git repository") {
            return GitError::NotARepository;
        }
        if text.contains("must be run in a work tree") {
            return GitError::Bare;
        }
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        let message = line.chars().filter(|letter| !letter.is_control()).take(300).collect();
        GitError::Failed { subcommand: self.subcommand, message }
    }
}

/// A file without a name: whoever writes into it never waits for whoever reads.
fn memory_file(content: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("names", MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file)
}

/// Complaints are read up to here; the rest is thrown away.
const MAX_STDERR_BYTES: usize = 16 << 10;

/// What a process said, and how it ended.
pub(super) struct ChildOutput {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs `command` to its end, or ends it with everybody whom it started. It is reaped in any case. What it reads is for the
/// caller to say.
pub(super) fn run_bounded(
    mut command: Command,
    subcommand: &'static str,
    max_bytes: usize,
    limit: Duration,
) -> Result<ChildOutput, GitError> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let failed = |error: io::Error| GitError::Failed { subcommand, message: error.to_string() };
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => GitError::Missing,
        _ => failed(error),
    })?;
    let mut output = OutputBuffers::default();
    let outcome = collect(&mut child, &mut output, max_bytes, limit);
    if !matches!(outcome, Ok(CollectOutcome::Done)) {
        // It may be gone already. Its helpers (a filter, say) are in its group.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    }
    let status = child.wait().map_err(failed)?;
    match outcome.map_err(failed)? {
        CollectOutcome::Done => Ok(ChildOutput { status, stdout: output.stdout, stderr: output.stderr }),
        CollectOutcome::TimedOut => Err(GitError::TimedOut { subcommand, seconds: limit.as_secs() }),
        CollectOutcome::TooLarge => Err(GitError::OutputTooLarge { subcommand, max_bytes }),
    }
}

enum CollectOutcome {
    Done,
    TimedOut,
    TooLarge,
}

#[derive(Default)]
struct OutputBuffers {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Reads both streams as they come, then waits for the end of the process, all within `limit`.
fn collect(
    child: &mut Child,
    output: &mut OutputBuffers,
    max_bytes: usize,
    limit: Duration,
) -> io::Result<CollectOutcome> {
    let deadline = now() + limit;
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let mut buffer = vec![0; 64 << 10];
    while stdout.is_some() || stderr.is_some() {
        let streams = [stdout.as_ref().map(AsFd::as_fd), stderr.as_ref().map(AsFd::as_fd)];
        let Some([out, err]) = wait_for(streams, deadline)? else { return Ok(CollectOutcome::TimedOut) };
        if out && !read_some(&mut stdout, &mut buffer, &mut output.stdout)? {
            stdout = None;
        }
        if err && !read_some(&mut stderr, &mut buffer, &mut output.stderr)? {
            stderr = None;
        }
        output.stderr.truncate(MAX_STDERR_BYTES);
        if output.stdout.len() > max_bytes {
            return Ok(CollectOutcome::TooLarge);
        }
    }
    let ended = wait_for([Some(process.as_fd()), None], deadline)?;
    Ok(if ended.is_some() { CollectOutcome::Done } else { CollectOutcome::TimedOut })
}

/// Which of them have something to say, or nothing if the time is up.
fn wait_for(streams: [Option<BorrowedFd<'_>>; 2], deadline: Duration) -> io::Result<Option<[bool; 2]>> {
    let mut waiting: Vec<_> =
        streams.iter().flatten().map(|stream| PollFd::from_borrowed_fd(*stream, PollFlags::IN)).collect();
    loop {
        let remaining = deadline.saturating_sub(now());
        let timeout = Timespec::try_from(remaining).map_err(io::Error::other)?;
        match poll(&mut waiting, Some(&timeout)) {
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
    fn subcommands_that_could_write_are_not_run() {
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
            let result = GitQuery::new(folder.path(), subcommand, ["--help"]).output();
            assert!(matches!(result, Err(GitError::NotReadOnly(name)) if name == subcommand), "{subcommand}");
        }
        let query =
            GitQuery::new(folder.path(), "diff", ["--output=x", "--no-index", "/dev/null", "/etc/passwd"]);
        assert!(matches!(query.output(), Err(GitError::NotReadOnly("diff"))));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    const LIMIT: Duration = Duration::from_secs(10);

    #[test]
    fn a_child_that_exceeds_its_time_limit_is_killed() {
        let mut command = Command::new("sleep");
        command.arg("600");
        let output = run_bounded(command, "status", 100, Duration::from_millis(100));
        assert!(matches!(output, Err(GitError::TimedOut { subcommand: "status", .. })));
    }

    #[test]
    fn a_killed_child_is_reaped_with_its_process_group() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        let script = "sleep 600 & echo $! $$ > pids; printf %101s; wait";
        command.current_dir(folder.path()).args(["-c", script]);
        let result = run_bounded(command, "status", 100, LIMIT);
        assert!(matches!(result, Err(GitError::OutputTooLarge { subcommand: "status", .. })));
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
    fn output_is_complete_or_an_error() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let output = run_bounded(shell("printf %1000s; printf %100000s >&2"), "diff", 1000, LIMIT).unwrap();
        assert_eq!((output.stdout.len(), output.stderr.len()), (1000, MAX_STDERR_BYTES));
        let result = run_bounded(shell("printf %1001s; sleep 600"), "diff", 1000, LIMIT);
        assert!(matches!(result, Err(GitError::OutputTooLarge { max_bytes: 1000, .. })));
    }
}
