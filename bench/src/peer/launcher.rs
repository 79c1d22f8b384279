//! Starts the servers: each with durable settings, in a temporary folder, on a free port of the loopback interface.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use super::{ServerKind, etcd, nats, postgres, redis, tenure, zookeeper};
use crate::clock::Instant;
use crate::error::{BenchError, IoContext as _};
use crate::processes::ServerProcess;
use crate::wire::Endpoint;

/// How long a server may take until it answers.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const START_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// For one attempt. ZooKeeper accepts connections before it is ready, and never answers these.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the programs are that are not found through PATH, and where data directories go.
#[derive(Debug, Clone)]
pub struct Launcher {
    pub tenure: PathBuf,
    pub etcd: PathBuf,
    pub nats: PathBuf,
    /// Parent of the temporary folders. Its disk decides what a durable write costs.
    pub data: PathBuf,
}

/// A server that answers. It ends, and its folder goes away, when this is dropped.
pub struct RunningServer {
    // Before the folder, so that it ends before its data directory goes away.
    pub process: ServerProcess,
    pub kind: ServerKind,
    pub address: SocketAddr,
    /// Tenure's local socket.
    pub socket: Option<PathBuf>,
    /// The `Authorization` header of requests, for Tenure.
    pub authorization: Option<String>,
    pub data: PathBuf,
    command: Command,
    folder: TempDir,
}

impl RunningServer {
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::Tcp(self.address)
    }

    /// Kills the server with SIGKILL, starts it again on the same data, and returns the time from the start of the process
    /// until it answers.
    pub async fn restart_after_kill(self) -> Result<(Self, Duration), BenchError> {
        let Self { process, kind, address, socket, authorization, data, command, folder } = self;
        process.kill()?;
        let started = Instant::now();
        let process = ServerProcess::start(kind.name(), &command, folder.path().join("log"))?;
        let mut server = Self { process, kind, address, socket, authorization, data, command, folder };
        server.wait_until_ready().await?;
        Ok((server, started.elapsed()))
    }

    async fn wait_until_ready(&mut self) -> Result<(), BenchError> {
        let started = Instant::now();
        loop {
            self.process.check_running()?;
            let prepared = timeout(ATTEMPT_TIMEOUT, self.prepare()).await;
            let failure = match prepared {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => error,
                Err(_) => BenchError::unexpected("the first request", "no response"),
            };
            if started.elapsed() > START_TIMEOUT {
                return Err(failure);
            }
            sleep(START_POLL_INTERVAL).await;
        }
    }

    /// Succeeds once the server answers, and creates what clients need.
    async fn prepare(&mut self) -> Result<(), BenchError> {
        match self.kind {
            ServerKind::Tenure => tenure::prepare(self).await,
            ServerKind::Etcd => etcd::prepare(self).await,
            ServerKind::Redis => redis::prepare(self).await,
            ServerKind::Postgres => postgres::prepare(self).await,
            ServerKind::Nats => nats::prepare(self).await,
            ServerKind::Zookeeper => zookeeper::prepare(self).await,
        }
    }
}

impl Launcher {
    /// Starts a server with an empty data directory, and waits until it answers.
    pub async fn start(&self, kind: ServerKind) -> Result<RunningServer, BenchError> {
        let folder = tempfile::Builder::new().prefix("tenure-bench-").tempdir_in(&self.data);
        let folder = folder.while_trying(format!("creating a folder in {}", self.data.display()))?;
        let (path, port) = (folder.path(), free_port()?);
        let data = path.join("data");
        let command = match kind {
            ServerKind::Tenure => tenure::command(&self.tenure, path, port),
            ServerKind::Etcd => etcd::command(&self.etcd, path, port, free_port()?),
            ServerKind::Redis => redis::command(path, port)?,
            ServerKind::Postgres => postgres::command(path, port)?,
            ServerKind::Nats => nats::command(&self.nats, path, port)?,
            ServerKind::Zookeeper => zookeeper::command(path, port)?,
        };
        let process = ServerProcess::start(kind.name(), &command, path.join("log"))?;
        let process = match kind {
            // SIGTERM would wait for its clients.
            ServerKind::Postgres => process.with_stop_signal(Signal::INT),
            _ => process,
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let socket = (kind == ServerKind::Tenure).then(|| tenure::socket(path));
        let mut server =
            RunningServer { process, kind, address, socket, authorization: None, data, command, folder };
        server.wait_until_ready().await?;
        Ok(server)
    }

    /// The version that the program itself prints, or its package.
    pub fn version(&self, kind: ServerKind) -> Result<String, BenchError> {
        let command = match kind {
            ServerKind::Tenure => with_arguments(&self.tenure, &["--version"]),
            ServerKind::Etcd => with_arguments(&self.etcd, &["--version"]),
            ServerKind::Redis => with_arguments(Path::new(redis::PROGRAM), &["--version"]),
            ServerKind::Postgres => with_arguments(&postgres::program("postgres")?, &["--version"]),
            ServerKind::Nats => with_arguments(&self.nats, &["--version"]),
            ServerKind::Zookeeper => zookeeper::version_command(),
        };
        Ok(version_in(&output_of(command)?))
    }
}

/// The first word that is a number with points, such as 7.0.15 in `Redis server v=7.0.15 sha=…`.
fn version_in(text: &str) -> String {
    let words = text.split_whitespace().map(|word| word.trim_start_matches(['v', '=']));
    let mut versions =
        words.filter(|word| word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.'));
    versions.next().unwrap_or("unknown").to_owned()
}

/// The settings that decide how durable a server is, as the report names them.
pub fn settings(kind: ServerKind) -> &'static str {
    match kind {
        ServerKind::Tenure => "defaults: every batch is signed and synced before its responses",
        ServerKind::Etcd => "defaults, one member: every transaction is synced",
        ServerKind::Redis => "`appendonly yes`, `appendfsync always`, no RDB snapshots",
        ServerKind::Postgres => "`fsync on`, `synchronous_commit on`, `max_connections 300`, `fillfactor 50`",
        ServerKind::Nats => "JetStream with `sync_interval: always`, one replica, file storage",
        ServerKind::Zookeeper => "standalone, `forceSync yes` (default), `maxClientCnxns 0`",
    }
}

/// A port of the loopback interface that was free a moment ago.
fn free_port() -> Result<u16, BenchError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).while_trying("looking for a free port")?;
    Ok(listener.local_addr().while_trying("looking for a free port")?.port())
}

fn with_arguments(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// The standard output of a command that succeeds.
pub fn output_of(mut command: Command) -> Result<String, BenchError> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| {
        BenchError::environment(
            format!("{shown} cannot be run: {error}"),
            "run `cargo xtask bench peers`, which installs the peers, or leave the system out with --systems",
        )
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(BenchError::environment(
        format!("{shown} ended with {}: {}", output.status, errors.trim()),
        "run it by hand with the same arguments",
    ))
}

/// Writes a configuration file of a server.
pub fn write_file(path: &Path, text: &str) -> Result<(), BenchError> {
    fs::write(path, text).while_trying(format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_what_the_programs_print() {
        for (text, version) in [
            ("tenure 0.1.0\n", "0.1.0"),
            ("etcd Version: 3.4.23\nGit SHA: Not provided\n", "3.4.23"),
            ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=ae4d\n", "7.0.15"),
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", "15.18"),
            ("nats-server: v2.15.1\n", "2.15.1"),
            ("3.8.0-11+deb12u2", "3.8.0-11+deb12u2"),
            ("no version", "unknown"),
        ] {
            assert_eq!(version_in(text), version, "{text:?}");
        }
    }
}
