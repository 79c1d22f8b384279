//! How the server can be reached.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use tenure_server::{ConnectionLimits, LocalSocketSettings, TlsFiles};

use super::sources::ConfigurationValue;
use super::{ConfigurationError, Folders, MergedValues};

/// The word for not at all.
pub(super) const NONE: &str = "none";

/// Where to listen on the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenAddress {
    /// Nowhere.
    None,
    /// There.
    At(SocketAddr),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str(NONE),
            Self::At(address) => address.fmt(formatter),
        }
    }
}

impl FromStr for ListenAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == NONE {
            return Ok(Self::None);
        }
        text.parse()
            .map(Self::At)
            .map_err(|_| "neither `none` nor an address and a port, such as 127.0.0.1:7420")
    }
}

/// How the server can be reached.
#[derive(Debug, Clone)]
pub struct NetworkSettings {
    /// Where to listen on the network.
    pub listen: Option<SocketAddr>,
    /// Where to listen for users of this machine.
    pub socket: Option<LocalSocketSettings>,
    /// The certificate.
    pub tls: Option<TlsFiles>,
    /// What else the server is called.
    pub hosts: Vec<String>,
    /// How many connections there may be, and for how long.
    pub limits: ConnectionLimits,
}

impl NetworkSettings {
    pub(super) fn new(sources: &MergedValues, folders: &Folders) -> Result<Self, ConfigurationError> {
        let listen = match sources
            .parse("listen")?
            .unwrap_or(ListenAddress::At(SocketAddr::from(([127, 0, 0, 1], 7420))))
        {
            ListenAddress::None => None,
            ListenAddress::At(address) => Some(address),
        };
        Ok(Self {
            listen,
            socket: socket(sources, folders)?,
            tls: tls(sources)?,
            hosts: sources.list("http.hosts")?.unwrap_or_default(),
            limits: limits(sources)?,
        })
    }
}

/// Where to listen for users of this machine.
pub(super) fn socket(
    sources: &MergedValues,
    folders: &Folders,
) -> Result<Option<LocalSocketSettings>, ConfigurationError> {
    let users = sources.list("socket.users")?.unwrap_or_default();
    // In a file, `socket` is a path or a table; a table has its path inside.
    match sources.get("socket").or_else(|| sources.get("socket.path")) {
        Some(value) if value.text == NONE => Ok(None),
        Some(value) => Ok(Some(LocalSocketSettings { path: value.path(), users, is_explicit: true })),
        None => Ok(Some(LocalSocketSettings { path: folders.socket(), users, is_explicit: false })),
    }
}

fn tls(sources: &MergedValues) -> Result<Option<TlsFiles>, ConfigurationError> {
    let path = |key| sources.get(key).map(ConfigurationValue::path);
    match (path("tls.certificate"), path("tls.key")) {
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(ConfigurationError::incomplete_pair("tls.certificate", "tls.key")),
        (None, Some(_)) => Err(ConfigurationError::incomplete_pair("tls.key", "tls.certificate")),
    }
}

fn limits(sources: &MergedValues) -> Result<ConnectionLimits, ConfigurationError> {
    let default = ConnectionLimits::default();
    let idle = sources.number("http.idle_seconds")?;
    Ok(ConnectionLimits {
        connections: sources.number_or("http.connections", default.connections)?,
        idle: idle.map_or(default.idle, |seconds: u32| Duration::from_secs(seconds.into())),
        ..default
    })
}
