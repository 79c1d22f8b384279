//! The server of this machine, for hooks of agents: over its local socket alone, and started if none is listening.

mod client;
mod start;

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use tenure_client::{Client, SettingsError};
use thiserror::Error;

pub use self::client::{AutostartClient, DIAGNOSE_COMMAND, START_COMMAND, connect, is_server_gone};
pub use self::start::{is_listening, run, start};
use crate::config::{ConfigurationError, LedgerLocation, LocalServerPaths};

/// Where the server of this machine listens, and where one that is started by itself says what it has to say.
#[derive(Debug, Clone)]
pub struct LocalServer {
    pub socket: PathBuf,
    /// The file that takes what the daemon says. Nothing where the environment does not say where it belongs.
    pub log: Option<PathBuf>,
}

/// Why nobody can be asked on this machine.
#[derive(Debug, Error)]
pub enum LocalServerError {
    #[error("the configuration cannot be used: {0}")]
    Configuration(#[from] ConfigurationError),
    #[error("the configuration says `socket = \"none\"`, and agents are answered on the local socket alone")]
    NoSocket,
    /// The client takes no such place.
    #[error(transparent)]
    Client(#[from] SettingsError),
}

impl LocalServer {
    /// The place that `tenure serve` would choose: by flags that nobody gave, the environment, the configuration file.
    ///
    /// `TENURE_URL` and `TENURE_TOKEN` are not looked at: files are those of this machine, and its own system says who
    /// asks. Where nobody listens, the server of the same ledger may listen elsewhere.
    pub fn find() -> Result<Self, LocalServerError> {
        let LocalServerPaths { socket, data, log } = LedgerLocation::default().local_server_paths()?;
        let socket = socket.ok_or(LocalServerError::NoSocket)?;
        let socket = std::path::absolute(&socket).unwrap_or(socket);
        let elsewhere = data.and_then(|data| find_other_socket(&data, &socket));
        Ok(Self { socket: elsewhere.unwrap_or(socket), log })
    }

    /// Speaks to whoever listens there. It connects when it is first asked for something.
    pub fn client(&self) -> Result<Client, LocalServerError> {
        Ok(Client::builder().socket(&self.socket).build()?)
    }
}

const MAX_BYTES: usize = 4096;

/// Writes down that the server of the ledger in `data` listens on `socket`.
pub fn write(data: &Path, socket: &Path) -> io::Result<()> {
    let socket = std::path::absolute(socket)?;
    let hint = hint_path(data);
    let mut temporary = hint.clone().into_os_string();
    temporary.push(format!(".{}", std::process::id()));
    let _ = fs::remove_file(&temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(socket.as_os_str().as_encoded_bytes())?;
    fs::rename(temporary, hint)
}

/// Where else it listens, if nobody does on `socket`.
pub fn find_other_socket(data: &Path, socket: &Path) -> Option<PathBuf> {
    let bytes = fs::read(hint_path(data)).ok().filter(|bytes| bytes.len() <= MAX_BYTES)?;
    let noted = PathBuf::from(OsString::from_vec(bytes));
    // Almost always it is the same place, and then nothing more is asked.
    let is_other = noted.is_absolute() && noted != socket;
    (is_other && !is_listening(socket) && is_listening(&noted)).then_some(noted)
}

/// Beside the data directory, not in it: a copy of that would bring it along.
fn hint_path(data: &Path) -> PathBuf {
    let mut name = data.components().collect::<PathBuf>().into_os_string();
    name.push(".socket");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn socket_hint_is_used_when_nothing_listens_on_the_default_socket() {
        let folder = tempfile::tempdir().unwrap();
        let [data, usual, other] = ["data/", "usual", "other one"].map(|name| folder.path().join(name));
        let found = || find_other_socket(&data, &usual);
        assert_eq!(found(), None, "there is no note");
        write(&data, &other).unwrap();
        assert_eq!(found(), None, "nobody listens");
        let listener = UnixListener::bind(&other).unwrap();
        assert_eq!(found(), Some(other.clone()));
        let both = UnixListener::bind(&usual).unwrap();
        assert_eq!(found(), None, "the usual place comes first");
        drop(both);
        assert_eq!(found(), Some(other.clone()), "a dead socket is nobody");
        drop(listener);
        assert_eq!(found(), None, "nobody listens any more");
        for text in ["", "relative", "/\0"] {
            fs::write(hint_path(&data), text).unwrap();
            assert_eq!(found(), None, "{text:?}");
        }
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 3, "{names:?}");
    }
}
