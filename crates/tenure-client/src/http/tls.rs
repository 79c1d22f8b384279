//! Whom a client believes to be the server.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use tokio_rustls::TlsConnector;

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
