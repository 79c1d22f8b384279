//! PostgreSQL: a table with a row per resource, over the extended query protocol with prepared statements.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::launcher::{RunningServer, output_of};
use super::{LeaseSlot, Step};
use crate::error::{BenchError, IoContext as _};
use crate::wire::{WireConnection, decimal};

/// Where Debian has the programs of each major version.
const DEBIAN_FOLDER: &str = "/usr/lib/postgresql";
/// The server refuses to run as root.
const USER: &str = "postgres";

/// The table has room for new versions of a row in the same page, so that an update touches no index.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS lease (resource text PRIMARY KEY, holder text NOT NULL, fence bigint NOT NULL, \
                     expires_at timestamptz NOT NULL) WITH (fillfactor = 50)";
const STATEMENTS: [(&str, &str); 3] = [
    (
        "acquire",
        "INSERT INTO lease AS held VALUES ($1, $2, 1, now() + interval '30 seconds') ON CONFLICT (resource) DO UPDATE \
         SET holder = excluded.holder, fence = held.fence + 1, expires_at = excluded.expires_at \
         WHERE held.expires_at <= now() RETURNING fence",
    ),
    (
        "renew",
        "UPDATE lease SET expires_at = now() + interval '30 seconds' \
         WHERE resource = $1 AND fence = $2::text::bigint AND expires_at > now()",
    ),
    (
        "release",
        "UPDATE lease SET expires_at = '-infinity' WHERE resource = $1 AND fence = $2::text::bigint AND expires_at > now()",
    ),
];

/// A program of the newest version that is installed.
pub fn program(name: &str) -> Result<PathBuf, BenchError> {
    let versions = std::fs::read_dir(DEBIAN_FOLDER).into_iter().flatten().flatten();
    let major = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions
        .map(|entry| entry.path())
        .filter(|path| major(path).is_some())
        .max_by_key(|path| major(path));
    let found = newest.map(|path| path.join("bin").join(name)).filter(|path| path.is_file());
    found.ok_or_else(|| {
        BenchError::environment(
            format!("PostgreSQL's {name} is not below {DEBIAN_FOLDER}"),
            "run `cargo xtask bench peers`, which installs the peers, or leave the system out with --systems",
        )
    })
}

/// Makes the data directory, and returns the command that serves it.
pub fn command(folder: &Path, port: u16) -> Result<Command, BenchError> {
    let data = folder.join("data");
    std::fs::create_dir(&data).while_trying("creating a data directory")?;
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        let id = |flag: &str| -> Result<u32, BenchError> {
            let mut command = Command::new("id");
            command.args([flag, USER]);
            let text = output_of(command)?;
            text.trim().parse().map_err(|_| BenchError::unexpected("id", text))
        };
        let (user, group) = (id("-u")?, id("-g")?);
        for path in [folder, &data] {
            chown(path, Some(user), Some(group))
                .while_trying(format!("giving {} to {USER}", path.display()))?;
        }
    }
    let mut initialise = as_server_user(&program("initdb")?, is_root);
    initialise.current_dir(folder).arg("-D").arg(&data);
    initialise.args(["-U", USER, "-A", "trust", "--locale=C", "--encoding=UTF8"]);
    output_of(initialise)?;
    let mut command = as_server_user(&program("postgres")?, is_root);
    command.current_dir(folder).arg("-D").arg(&data);
    let port = format!("port={port}");
    for setting in [
        "listen_addresses=127.0.0.1",
        &port,
        "unix_socket_directories=",
        "max_connections=300",
        "fsync=on",
        "synchronous_commit=on",
    ] {
        command.args(["-c", setting]);
    }
    Ok(command)
}

fn as_server_user(program: &Path, is_root: bool) -> Command {
    if !is_root {
        return Command::new(program);
    }
    // The signal at the end of this program is set again, because changing the user clears it.
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--pdeathsig", "KILL"]).arg(program);
    command
}

pub async fn prepare(server: &RunningServer) -> Result<(), BenchError> {
    let mut wire = connect(server).await?;
    write_message(&mut wire.outgoing, b'Q', &[TABLE]);
    wire.flush().await?;
    wait_until_ready(&mut wire).await
}

async fn connect(server: &RunningServer) -> Result<WireConnection, BenchError> {
    let mut wire = WireConnection::connect(&server.endpoint()).await?;
    // Version 3.0 of the protocol; this first message has no type.
    let parameters = b"\0\x03\0\0user\0postgres\0database\0postgres\0\0";
    let length = i32::try_from(parameters.len() + 4).unwrap_or_default();
    wire.outgoing.extend_from_slice(&length.to_be_bytes());
    wire.outgoing.extend_from_slice(parameters);
    wire.flush().await?;
    wait_until_ready(&mut wire).await?;
    Ok(wire)
}

pub struct Postgres {
    wire: WireConnection,
    holder: String,
    fence: String,
}

impl Postgres {
    pub async fn connect(server: &RunningServer, number: usize) -> Result<Self, BenchError> {
        let mut wire = connect(server).await?;
        for (name, statement) in STATEMENTS {
            // No types of parameters: the server infers them.
            write_message(&mut wire.outgoing, b'P', &[name, statement, "\0"]);
        }
        write_message(&mut wire.outgoing, b'S', &[]);
        wire.flush().await?;
        wait_until_ready(&mut wire).await?;
        Ok(Self { wire, holder: format!("bench-{number}"), fence: String::new() })
    }

    /// Each command ends with a Sync of its own, so that each is a transaction of its own.
    pub async fn perform(
        &mut self,
        step: Step,
        slots: &mut [LeaseSlot],
        completed: &mut (impl FnMut() + Send),
    ) -> Result<(), BenchError> {
        for slot in slots.iter() {
            let second = match step {
                Step::Acquire => self.holder.as_str(),
                Step::Renew | Step::Release => {
                    use std::fmt::Write as _;
                    self.fence.clear();
                    write!(self.fence, "{}", slot.revision).expect("memory can be written");
                    self.fence.as_str()
                }
            };
            write_execute(&mut self.wire.outgoing, step.name(), [&slot.resource, second]);
        }
        self.wire.flush().await?;
        for slot in slots {
            let changed = self.wire.receive(|bytes| CommandResult::parse(step, bytes)).await?;
            match (step, changed) {
                (Step::Acquire, CommandResult { changed: 1, fence: Some(fence) }) => slot.revision = fence,
                (Step::Acquire, CommandResult { changed: 0, .. }) => {
                    return Err(BenchError::Denied("the row has not expired".to_owned()));
                }
                (Step::Renew | Step::Release, CommandResult { changed: 1, .. }) => {}
                (_, result) => {
                    return Err(BenchError::unexpected(step.name(), format!("{} rows", result.changed)));
                }
            }
            completed();
        }
        Ok(())
    }
}

/// What the server says of one statement, up to and with its ReadyForQuery.
struct CommandResult {
    changed: u64,
    /// What the statement returned.
    fence: Option<u64>,
}

impl CommandResult {
    fn parse(step: Step, bytes: &[u8]) -> Result<Option<(usize, Self)>, BenchError> {
        let malformed = || BenchError::unexpected(step.name(), bytes);
        let (mut position, mut result) = (0, Self { changed: 0, fence: None });
        while let Some((kind, body, length)) = message(&bytes[position..]) {
            position += length;
            match kind {
                b'Z' => return Ok(Some((position, result))),
                // One column: its number, its length, and its text.
                b'D' => result.fence = Some(body.get(6..).and_then(decimal).ok_or_else(malformed)?),
                // `INSERT 0 1`, `UPDATE 1`
                b'C' => {
                    let count =
                        body.strip_suffix(b"\0").and_then(|tag| tag.rsplit(|byte| *byte == b' ').next());
                    result.changed = count.and_then(decimal).ok_or_else(malformed)?;
                }
                b'2' | b'N' | b'S' => {}
                _ => return Err(malformed()),
            }
        }
        Ok(None)
    }
}

/// A whole message at the start of `bytes`: its type, its body and its length with both.
fn message(bytes: &[u8]) -> Option<(u8, &[u8], usize)> {
    let (kind, rest) = bytes.split_first()?;
    let length = usize::try_from(u32::from_be_bytes(*rest.first_chunk()?)).ok()?;
    Some((*kind, rest.get(4..length)?, length + 1))
}

async fn wait_until_ready(wire: &mut WireConnection) -> Result<(), BenchError> {
    loop {
        let kind = wire.receive(|bytes| match message(bytes) {
            Some((b'E', body, _)) => Err(BenchError::unexpected("a connection to PostgreSQL", body)),
            Some((kind, _, length)) => Ok(Some((length, kind))),
            None => Ok(None),
        });
        if kind.await? == b'Z' {
            return Ok(());
        }
    }
}

/// Appends a message of texts, each of which ends with a zero.
fn write_message(outgoing: &mut Vec<u8>, kind: u8, texts: &[&str]) {
    outgoing.push(kind);
    with_length(outgoing, |outgoing| {
        for text in texts {
            outgoing.extend_from_slice(text.as_bytes());
            outgoing.push(0);
        }
    });
}

/// Appends Bind, Execute and Sync for a prepared statement with two parameters as text.
fn write_execute(outgoing: &mut Vec<u8>, statement: &str, parameters: [&str; 2]) {
    outgoing.push(b'B');
    with_length(outgoing, |outgoing| {
        // The portal without a name.
        outgoing.push(0);
        outgoing.extend_from_slice(statement.as_bytes());
        // No formats of parameters, which makes all of them text, and two parameters.
        outgoing.extend_from_slice(&[0, 0, 0, 0, 2]);
        for parameter in parameters {
            let length = i32::try_from(parameter.len()).unwrap_or_default();
            outgoing.extend_from_slice(&length.to_be_bytes());
            outgoing.extend_from_slice(parameter.as_bytes());
        }
        // Results as text.
        outgoing.extend_from_slice(&[0, 0]);
    });
    // Execute the portal without a name, all of it; then Sync.
    outgoing.extend_from_slice(b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04");
}

/// Puts the length, which counts itself, in front of what `write` appends.
fn with_length(outgoing: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = outgoing.len();
    outgoing.extend_from_slice(&[0; 4]);
    write(outgoing);
    let length = u32::try_from(outgoing.len() - start).unwrap_or_default();
    outgoing[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(parts: &[(u8, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, body) in parts {
            bytes.push(*kind);
            with_length(&mut bytes, |bytes| bytes.extend_from_slice(body));
        }
        bytes
    }

    #[test]
    fn a_result_ends_with_ready_for_query() {
        let row = [b"\0\x01\0\0\0\x02".as_slice(), b"17"].concat();
        let bytes = messages(&[(b'2', b""), (b'D', &row), (b'C', b"INSERT 0 1\0"), (b'Z', b"I")]);
        let (length, result) = CommandResult::parse(Step::Acquire, &bytes).unwrap().expect("whole");
        assert_eq!((length, result.changed, result.fence), (bytes.len(), 1, Some(17)));
        for end in 0..bytes.len() {
            assert!(CommandResult::parse(Step::Acquire, &bytes[..end]).unwrap().is_none(), "{end}");
        }
    }

    #[test]
    fn an_update_of_no_row_is_a_result_and_an_error_is_not() {
        let none = messages(&[(b'2', b""), (b'C', b"UPDATE 0\0"), (b'Z', b"I")]);
        assert_eq!(CommandResult::parse(Step::Renew, &none).unwrap().expect("whole").1.changed, 0);
        let error = messages(&[(b'E', b"SERROR\0\0"), (b'Z', b"I")]);
        assert!(CommandResult::parse(Step::Renew, &error).is_err());
    }

    #[test]
    fn a_message_counts_its_length_but_not_its_type() {
        let mut outgoing = Vec::new();
        write_message(&mut outgoing, b'Q', &["SELECT 1"]);
        assert_eq!(outgoing, b"Q\0\0\0\x0dSELECT 1\0");
        outgoing.clear();
        write_execute(&mut outgoing, "renew", ["a", "12"]);
        let (kind, body, length) = message(&outgoing).expect("Bind");
        assert_eq!((kind, body), (b'B', b"\0renew\0\0\0\0\x02\0\0\0\x01a\0\0\0\x0212\0\0".as_slice()));
        assert_eq!(&outgoing[length..], b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04");
    }
}
