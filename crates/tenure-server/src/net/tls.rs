//! TLS: a certificate and its key from files, which can be read again while the server runs.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use thiserror::Error;
use tokio_rustls::TlsAcceptor;
use zeroize::Zeroizing;

/// Where the certificate and its key are, as PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those between it and an authority.
    pub certificate: PathBuf,
    /// Its key, which nobody else may read.
    pub key: PathBuf,
}

/// Why there is no TLS. Each says what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    #[error("{} cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("others can reach the key {} (mode {mode:04o}); if nobody has read it, run: chmod 600 FILE; else have a \
             new certificate made", path.display())]
    InsecureKeyPermissions { path: PathBuf, mode: u32 },
    #[error("{} holds no {what} as PEM", path.display())]
    Malformed { path: PathBuf, what: &'static str },
    /// They do not go together, or cannot be used.
    #[error("{} and {} cannot be used together", files.certificate.display(), files.key.display())]
    Unusable {
        files: TlsFiles,
        #[source]
        source: rustls::Error,
    },
}

pub(crate) struct ReloadableTls {
    files: TlsFiles,
    current: RwLock<Arc<LoadedTlsConfig>>,
}

struct LoadedTlsConfig {
    server: Arc<ServerConfig>,
    certificate: CertificateDer<'static>,
}

impl ReloadableTls {
    pub(crate) fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let current = RwLock::new(Arc::new(read(&files)?));
        Ok(Self { files, current })
    }

    /// Reads the files again. If they cannot be used, what was in use still is.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        let next = Arc::new(read(&self.files)?);
        *self.current.write() = next;
        Ok(())
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.current().server.clone().into()
    }

    /// Whether the certificate is for a server of this name.
    pub(crate) fn is_valid_for_host(&self, name: &str) -> bool {
        let current = self.current();
        let Ok(name) = ServerName::try_from(name) else { return false };
        let certificate = ParsedCertificate::try_from(&current.certificate);
        certificate.is_ok_and(|certificate| verify_server_name(&certificate, &name).is_ok())
    }

    fn current(&self) -> Arc<LoadedTlsConfig> {
        self.current.read().clone()
    }
}

fn read(files: &TlsFiles) -> Result<LoadedTlsConfig, TlsError> {
    let malformed = |path: &Path, what| TlsError::Malformed { path: path.into(), what };
    let (text, _) = bytes_of(&files.certificate)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let no_certificate = || malformed(&files.certificate, "certificate");
    let chain = chain.map_err(|_| no_certificate())?;
    let certificate = chain.first().ok_or_else(no_certificate)?.clone();
    let (text, mode) = bytes_of(&files.key)?;
    if mode & 0o077 != 0 {
        return Err(TlsError::InsecureKeyPermissions { path: files.key.clone(), mode });
    }
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|_| malformed(&files.key, "private key"))?;
    // The provider is named: another one somewhere in the program would leave the choice to chance.
    let server = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
    let mut server = server.map_err(|source| TlsError::Unusable { files: files.clone(), source })?;
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(LoadedTlsConfig { server: Arc::new(server), certificate })
}

fn bytes_of(path: &Path) -> Result<(Zeroizing<Vec<u8>>, u32), TlsError> {
    let failed = |source| TlsError::Unreadable { path: path.into(), source };
    let mut file = File::open(path).map_err(failed)?;
    // Asked of the open file: the path could name another one by now.
    let metadata = file.metadata().map_err(failed)?;
    // With room for everything: a buffer that grew would leave copies of the key behind.
    let length = usize::try_from(metadata.len()).unwrap_or(0);
    let mut bytes = Zeroizing::new(Vec::with_capacity(length + 1));
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok((bytes, metadata.permissions().mode() & 0o7777))
}
