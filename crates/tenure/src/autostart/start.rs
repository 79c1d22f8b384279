//! Starts the daemon if none is listening: once, however many hooks request it at the same time.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use std::{fs, io};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use tenure_client::boot_microseconds as now;
use tenure_core::kernel::ProcessId;
use tenure_host::process;
use tenure_host::process::Liveness;
use tenure_host::stderr::print_error;
use thiserror::Error;

use super::LocalServer;
use crate::config::variable;
use crate::exit;

/// How long a daemon may take until it listens.
const START_TIMEOUT: Duration = Duration::from_secs(8);
/// How long to look on after a daemon ended: somebody else's may be about to listen.
const LATE_LISTEN_TIMEOUT: Duration = Duration::from_millis(600);
const PAUSE: Duration = Duration::from_millis(10);
/// A log that is larger begins anew.
const MAX_LOG_BYTES: u64 = 1 << 20;
/// What of its end is looked at for a last word.
const LOG_TAIL_BYTES: u64 = 2_000;

/// What a daemon gets of the environment: who it is for, and where things are.
///
/// Nothing else: the environment of an agent holds its secrets, and must not decide whether the gate denies.
const ENVIRONMENT: [&str; 12] = [
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "LANG",
    "TZ",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "TENURE_CONFIG",
    "TENURE_DATA",
    "TENURE_SOCKET_USERS",
];

/// Variables of the daemon's ledger: where it is and how large.
const LEDGER: &str = "TENURE_LEDGER_";

/// Why there is no daemon. [`DaemonStartError::suggested_command`] is the one command that helps.
#[derive(Debug, Error)]
pub enum DaemonStartError {
    /// Nobody says where its log and its ledger belong.
    #[error("neither XDG_STATE_HOME nor HOME says where its log belongs")]
    NoHome,
    /// Its log cannot be written, so it would fail without a word.
    #[error("its log {} cannot be written: {source}", path.display())]
    Log { path: PathBuf, source: io::Error },
    #[error("it cannot be started: {0}")]
    Spawn(#[from] io::Error),
    #[error("it was started and ended at once: {last_message}")]
    Ended { last_message: String },
    /// It does not listen yet, or somebody else starts it and does not get on.
    #[error("it does not listen after 8 s")]
    Slow { log: PathBuf },
}

impl DaemonStartError {
    /// The one command that helps, or shows why.
    pub fn suggested_command(&self) -> String {
        match self {
            Self::NoHome | Self::Log { .. } | Self::Spawn(_) | Self::Ended { .. } => {
                "tenure serve --listen none".to_owned()
            }
            Self::Slow { log } => format!("tail {}", log.display()),
        }
    }
}

/// Starts the daemon, and waits until it listens. Whoever asks while another one starts it waits for that one.
pub async fn start(local: &LocalServer) -> Result<(), DaemonStartError> {
    let log = local.log.as_deref().ok_or(DaemonStartError::NoHome)?;
    if tenure_guard::is_guarded() {
        return started_by_guard(local, log).await;
    }
    let failed = |source| DaemonStartError::Log { path: log.into(), source };
    let until = now() + micros(START_TIMEOUT);
    // Whoever has the lock on the log is the one who starts.
    let lock = open(log).map_err(failed)?;
    while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        if is_listening(&local.socket) {
            return Ok(());
        }
        pause_before(until, log).await?;
    }
    if is_listening(&local.socket) {
        return Ok(());
    }
    if lock.metadata().is_ok_and(|found| found.len() > MAX_LOG_BYTES) {
        lock.set_len(0).map_err(failed)?;
    }
    let daemon = spawn(&local.socket, log)?;
    while !is_listening(&local.socket) {
        if process::liveness(&daemon) == Liveness::Dead {
            // The next one need not wait for us to look on.
            drop(lock);
            return listens_after_all(&local.socket, log).await;
        }
        pause_before(until, log).await?;
    }
    Ok(())
}

/// Whoever a guard watches cannot start it: the daemon would be watched as well, and end with the guard. So the guard is asked,
/// by a call that it hears of and that fails.
async fn started_by_guard(local: &LocalServer, log: &Path) -> Result<(), DaemonStartError> {
    match spawn(&local.socket, log) {
        Err(DaemonStartError::Spawn(error))
            if error.raw_os_error() == Some(tenure_guard::SERVER_STARTED_ERRNO.raw_os_error()) =>
        {
            listens_after_all(&local.socket, log).await
        }
        Err(error) => Err(error),
        Ok(_) => Ok(()),
    }
}

/// Ours is gone. A person may have started another one at the same time, which has the ledger now.
async fn listens_after_all(socket: &Path, log: &Path) -> Result<(), DaemonStartError> {
    let until = now() + micros(LATE_LISTEN_TIMEOUT);
    while now() < until {
        if is_listening(socket) {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(ended(log))
}

async fn pause_before(until: u64, log: &Path) -> Result<(), DaemonStartError> {
    if now() >= until {
        return Err(DaemonStartError::Slow { log: log.into() });
    }
    tokio::time::sleep(PAUSE).await;
    Ok(())
}

/// Whether somebody listens. A socket whose server is dead refuses; one whose server takes nobody in, because it is stopped
/// or too many wait, would keep us waiting for ever.
pub fn is_listening(socket: &Path) -> bool {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let connected = SocketAddrUnix::new(socket).and_then(|address| {
        let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&stream, &address)
    });
    matches!(connected, Ok(()) | Err(Errno::AGAIN))
}

/// Starts it behind a process that cuts it off from us and ends at once.
fn spawn(socket: &Path, log: &Path) -> Result<ProcessId, DaemonStartError> {
    let stderr = open(log).map_err(|source| DaemonStartError::Log { path: log.into(), source })?;
    let mut command = Command::new("/proc/self/exe");
    command.arg0("tenure").arg(tenure_guard::DETACHED).arg(socket);
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| is_kept(name)));
    command.stdin(Stdio::null()).stderr(stderr);
    let output = command.output()?;
    let process = str::from_utf8(&output.stdout).ok().and_then(|text| text.trim().parse().ok());
    process::of(process.ok_or_else(|| ended(log))?).map_err(|_| ended(log))
}

fn ended(log: &Path) -> DaemonStartError {
    DaemonStartError::Ended { last_message: last_log_message(log) }
}

fn is_kept(name: &OsString) -> bool {
    name.to_str().is_some_and(|name| ENVIRONMENT.contains(&name) || name.starts_with(LEDGER))
}

/// Opens the log to add to it. Its folder is made where it is missing.
fn open(log: &Path) -> io::Result<File> {
    if let Some(folder) = log.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(log)
}

/// What the log says last: its last message, on one line.
fn last_log_message(log: &Path) -> String {
    let length = fs::metadata(log).map_or(0, |found| found.len());
    let mut end = Vec::new();
    let read = File::open(log).and_then(|mut file| {
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES)))?;
        file.take(LOG_TAIL_BYTES).read_to_end(&mut end)
    });
    let text = String::from_utf8_lossy(&end);
    let begin = text.rfind("tenure: ").map(|begin| begin + "tenure: ".len());
    match (read, begin) {
        (Ok(_), Some(begin)) => text[begin..].split_whitespace().collect::<Vec<_>>().join(" "),
        _ => "it said nothing".to_owned(),
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Starts the daemon on this socket, says its process id on standard output, and ends.
///
/// What it says goes where our standard error goes. Its parent is gone at once, so nobody can mistake it for a child of
/// the agent.
pub fn run(socket: Option<OsString>) -> ExitCode {
    let started = socket.ok_or_else(|| io::Error::other("no socket was named")).and_then(spawn_daemon);
    match started.and_then(|process| writeln!(io::stdout(), "{process}")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error("the daemon cannot be started", &error);
            exit::UNAVAILABLE.into()
        }
    }
}

fn spawn_daemon(socket: OsString) -> io::Result<u32> {
    close_inherited()?;
    // A session of its own: no terminal, and no group that somebody ends.
    rustix::process::setsid()?;
    let log = io::stderr().as_fd().try_clone_to_owned()?;
    // By its own name where it still has it, so that people find it; a replaced program has none.
    let named = std::env::current_exe().ok().filter(|program| program.is_file());
    let mut daemon = Command::new(named.unwrap_or_else(|| PathBuf::from("/proc/self/exe")));
    daemon.arg0("tenure").args(["serve", "--listen", "none", "--socket"]).arg(socket);
    daemon.stdin(Stdio::null()).stdout(log).stderr(Stdio::inherit());
    // Not in somebody's checkout, which could not be removed or unmounted then.
    daemon.current_dir(home().filter(|home| home.is_dir()).unwrap_or_else(|| PathBuf::from("/")));
    daemon.spawn().map(|daemon| daemon.id())
}

fn home() -> Option<PathBuf> {
    variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// Closes every descriptor that was inherited beside the three that everybody has. Nothing else is open yet.
fn close_inherited() -> io::Result<()> {
    let names: Vec<_> = fs::read_dir("/proc/self/fd")?.flatten().map(|entry| entry.file_name()).collect();
    let numbers = names.iter().filter_map(|name| name.to_str()?.parse::<i32>().ok());
    for number in numbers.filter(|number| *number > 2) {
        // One of them read the folder, and is closed by now.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_listening_does_not_block_on_a_full_backlog() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        assert!(!is_listening(&path));
        let address = SocketAddrUnix::new(&path).unwrap();
        let new =
            || socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
        let server = new();
        rustix::net::bind(&server, &address).unwrap();
        assert!(!is_listening(&path), "bound, and nobody listens");
        rustix::net::listen(&server, 1).unwrap();
        let mut waiting = Vec::new();
        loop {
            let one = new();
            let connected = connect(&one, &address);
            waiting.push(one);
            if connected == Err(Errno::AGAIN) {
                break;
            }
            connected.unwrap();
        }
        assert!(is_listening(&path));
        drop(server);
        assert!(!is_listening(&path), "nobody is there any more");
    }
}
