//! Where the server of this machine listens.

use std::path::PathBuf;

use tenure_client::{Client, SettingsError};
use thiserror::Error;

use super::socket_hint;
use crate::configuration::{ConfigurationError, LedgerLocation, LocalServerPaths};

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
        let elsewhere = data.and_then(|data| socket_hint::find_other_socket(&data, &socket));
        Ok(Self { socket: elsewhere.unwrap_or(socket), log })
    }

    /// Speaks to whoever listens there. It connects when it is first asked for something.
    pub fn client(&self) -> Result<Client, LocalServerError> {
        Ok(Client::builder().socket(&self.socket).build()?)
    }
}
