//! Where the server is, and a connection to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use hyper::Uri;
use rustix::net::sockopt;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

/// Where the server is.
#[derive(Clone)]
pub(crate) enum ServerAddress {
    /// On this machine.
    Unix(PathBuf),
    /// In the clear.
    Tcp { host: String, port: u16 },
    /// With TLS.
    Tls { host: String, port: u16, name: ServerName<'static> },
}

/// Where the server is, with all that it takes to get there.
#[derive(Clone)]
pub(crate) struct Endpoint {
    address: ServerAddress,
    /// What speaks TLS, where that is spoken.
    connector: Option<TlsConnector>,
}

/// Whatever bytes go through.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// A URL that does not name a server.
#[derive(Debug, Error)]
#[error("`{0}` is not the address of a server; write http://HOST:PORT, https://HOST:PORT or unix:/PATH")]
pub struct InvalidUrl(String);

impl ServerAddress {
    pub(crate) fn parse(url: &str) -> Result<Self, InvalidUrl> {
        // It may hold a password, and then must not be repeated.
        let invalid = || InvalidUrl(if url.contains('@') { "…".into() } else { url.to_owned() });
        if let Some(path) = url.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.starts_with('/') { Ok(Self::Unix(path.into())) } else { Err(invalid()) };
        }
        let uri: Uri = url.parse().map_err(|_| invalid())?;
        let authority =
            uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(invalid)?;
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(invalid());
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        match uri.scheme_str() {
            Some("http") => Ok(Self::Tcp { host, port: authority.port_u16().unwrap_or(80) }),
            Some("https") => {
                let name = ServerName::try_from(host.clone()).map_err(|_| invalid())?;
                Ok(Self::Tls { host, port: authority.port_u16().unwrap_or(443), name })
            }
            _ => Err(invalid()),
        }
    }
}

impl Endpoint {
    pub(crate) fn new(place: ServerAddress, trust: &TrustRoots<'_>) -> Result<Self, TlsError> {
        let connector = matches!(place, ServerAddress::Tls { .. }).then(|| connector(trust)).transpose()?;
        Ok(Self { address: place, connector })
    }

    /// What goes into the header `Host`.
    pub(crate) fn host(&self) -> String {
        match &self.address {
            ServerAddress::Unix(_) => "localhost".into(),
            ServerAddress::Tcp { host, port } | ServerAddress::Tls { host, port, .. }
                if host.contains(':') =>
            {
                format!("[{host}]:{port}")
            }
            ServerAddress::Tcp { host, port } | ServerAddress::Tls { host, port, .. } => {
                format!("{host}:{port}")
            }
        }
    }

    /// Whether a token may be sent there: on a socket the system says who speaks, and a token would only be one more
    /// place to leak it.
    pub(crate) fn uses_token(&self) -> bool {
        !matches!(self.address, ServerAddress::Unix(_))
    }

    pub(crate) async fn connect(&self) -> io::Result<Box<dyn ByteStream>> {
        let (stream, name) = match &self.address {
            ServerAddress::Unix(path) => return Ok(Box::new(UnixStream::connect(path).await?)),
            ServerAddress::Tcp { host, port } => return Ok(Box::new(connect_tcp(host, *port).await?)),
            ServerAddress::Tls { host, port, name } => (connect_tcp(host, *port).await?, name.clone()),
        };
        let connector = self.connector.as_ref().expect("a place with TLS has what speaks it");
        Ok(Box::new(connector.connect(name, stream).await?))
    }
}

async fn connect_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    // A request is one small write: waiting for more to send would only delay it.
    stream.set_nodelay(true)?;
    // A request that waits for its turn says nothing for hours. A peer that is gone without a word is found out.
    sockopt::set_socket_keepalive(&stream, true)?;
    sockopt::set_tcp_keepidle(&stream, Duration::from_secs(15))?;
    sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(5))?;
    sockopt::set_tcp_keepcnt(&stream, 3)?;
    Ok(stream)
}

/// For messages.
impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            ServerAddress::Unix(path) => write!(formatter, "unix:{}", path.display()),
            ServerAddress::Tcp { .. } => write!(formatter, "http://{}", self.host()),
            ServerAddress::Tls { .. } => write!(formatter, "https://{}", self.host()),
        }
    }
}

/// Why nobody could be believed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The file with the authority is not as it should be.
    #[error(
        "the certificates in {} cannot be read: {detail}; TENURE_CA names a PEM file with the authority",
        path.display()
    )]
    Authority {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The system names no authority.
    #[error(
        "this system trusts no certificate authority: {0}; TENURE_CA names a PEM file with the one to trust"
    )]
    NoRoots(String),
    /// The library refuses.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

/// Which authorities are believed.
pub(crate) enum TrustRoots<'a> {
    /// This one alone.
    Authority(&'a Path),
    /// Those that the system believes.
    System,
}

/// What speaks TLS, with the provider named: nothing here depends on what a program installed for the whole process.
pub(crate) fn connector(trust: &TrustRoots<'_>) -> Result<TlsConnector, TlsError> {
    let mut roots = RootCertStore::empty();
    match trust {
        TrustRoots::Authority(path) => add_authority(&mut roots, path)?,
        TrustRoots::System => {
            let found = rustls_native_certs::load_native_certs();
            let (added, _) = roots.add_parsable_certificates(found.certs);
            if added == 0 {
                let errors: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
                return Err(TlsError::NoRoots(errors.join(", ")));
            }
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn add_authority(roots: &mut RootCertStore, path: &Path) -> Result<(), TlsError> {
    let failed = |detail: String| TlsError::Authority { path: path.to_owned(), detail };
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| failed(text(error)))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| failed(text(error)))?;
        roots.add(certificate).map_err(|error| failed(error.to_string()))?;
    }
    if roots.is_empty() { Err(failed("no certificate is in it".into())) } else { Ok(()) }
}

fn text(error: rustls::pki_types::pem::Error) -> String {
    match error {
        rustls::pki_types::pem::Error::Io(error) => io::Error::to_string(&error),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        match ServerAddress::parse(url) {
            Ok(place @ (ServerAddress::Unix(_) | ServerAddress::Tcp { .. })) => {
                Endpoint { address: place, connector: None }.to_string()
            }
            Ok(ServerAddress::Tls { host, port, .. }) => format!("TLS to {host} at {port}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn server_address_is_a_url_or_a_socket() {
        assert_eq!(shown("http://127.0.0.1:7420"), "http://127.0.0.1:7420");
        assert_eq!(shown("http://[::1]:7420/"), "http://[::1]:7420");
        assert_eq!(shown("http://tenure.example"), "http://tenure.example:80");
        assert_eq!(shown("https://tenure.example"), "TLS to tenure.example at 443");
        assert_eq!(shown("unix:/run/tenure.sock"), "unix:/run/tenure.sock");
        assert_eq!(shown("unix:///run/tenure.sock"), "unix:/run/tenure.sock");
    }

    #[test]
    fn invalid_server_url_is_rejected_without_showing_its_password() {
        for url in
            ["", "tenure.example:7420", "ftp://x", "http://x/path", "http://x?q", "unix:run.sock", "http://"]
        {
            assert!(shown(url).contains("is not the address of a server"), "{url}: {}", shown(url));
        }
        assert!(!shown("http://user:hunter2@x").contains("hunter2"));
    }
}
