//! Flags over the environment over a file over defaults.
//!
//! A key is known by one name everywhere: `segment_size` in the table `[ledger]` of the file is
//! `TENURE_LEDGER_SEGMENT_SIZE` in the environment.

mod file;
mod folders;
mod sources;

use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

pub use self::folders::Folders;
pub use self::sources::{Flags, Sources};

/// Every key that there is. Any other in a file is refused: a misspelt one must not be ignored.
const KEYS: &[&str] = &["listen", "data", "ledger.witness", "ledger.segment_size", "ledger.reserve"];

/// What the program was told to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where the ledger is.
    pub data: PathBuf,
    /// Where its witness is; `None` is the usual place, which depends on the data directory.
    pub witness: Option<PathBuf>,
    /// How large each file of the ledger is; `None` is the usual size.
    pub segment_size: Option<u64>,
    /// How much is set aside for the ends of leases when the disk is full; `None` is the usual amount.
    pub reserve: Option<u64>,
}

/// Why a configuration cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigurationError {
    /// The file cannot be read.
    #[error("{} cannot be read; choose another with --config, or leave it out", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{} is not TOML: {reason}", path.display())]
    NotToml {
        /// Which file.
        path: PathBuf,
        /// Where, and why not.
        reason: String,
    },
    /// A key that does not exist.
    #[error("{} has the key `{key}`, which does not exist; there are: {}", path.display(), KEYS.join(", "))]
    UnknownKey {
        /// Which key.
        key: String,
        /// In which file.
        path: PathBuf,
    },
    /// A value that cannot be used.
    #[error("{origin} is {value:?}, which is not {expected}")]
    BadValue {
        /// Where it was said.
        origin: String,
        /// What was said.
        value: String,
        /// What should have been said.
        expected: &'static str,
    },
    /// Neither a flag nor the environment says where anything belongs.
    #[error("neither XDG_STATE_HOME nor HOME says where {what} belongs; set one of them, or {remedy}")]
    NoFolder {
        /// What has no place.
        what: &'static str,
        /// What else can be done.
        remedy: &'static str,
    },
}

impl Configuration {
    /// Puts together what flags, environment and file say.
    pub fn new(sources: &Sources, folders: &Folders) -> Result<Self, ConfigurationError> {
        let listen = sources.parse("listen", "an address and a port, such as 127.0.0.1:7420")?;
        let data = match sources.get("data") {
            Some(value) => PathBuf::from(value.text),
            None => folders.state("the ledger", "say --data")?.join("tenure"),
        };
        Ok(Self {
            listen: listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 7420))),
            data,
            witness: sources.get("ledger.witness").map(|value| value.text.into()),
            segment_size: sources.parse("ledger.segment_size", "a number of bytes")?,
            reserve: sources.parse("ledger.reserve", "a number of bytes")?,
        })
    }
}

#[cfg(test)]
mod tests;
