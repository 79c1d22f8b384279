//! A process that is heard to its end, or ended.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use rustix::time::{ClockId, clock_gettime};

use super::GitError;

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
