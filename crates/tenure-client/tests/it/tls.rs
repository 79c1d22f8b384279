//! TLS: only to whom the authority vouches for.

use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tenure_client::{Client, Error, LeaseFilter, Secret};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(path: &Path) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(path, authority.pem()).unwrap();
    authority
}

/// Answers every request with an empty list, and gives its port.
async fn serve(authority: &Authority, name: &str) -> u16 {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, authority).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // Who does not trust us hangs up.
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut bytes = vec![0; 1 << 12];
            let count = stream.read(&mut bytes).await.unwrap_or(0);
            let is_known = String::from_utf8_lossy(&bytes[..count]).contains("Bearer hush");
            let body = if is_known { r#"{"leases":[],"next":null}"# } else { "{}" };
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    port
}

async fn list(url: &str, authority: &Path) -> Result<usize, Error> {
    let client = Client::builder()
        .url(url)
        .unwrap()
        .token(Secret::new("hush"))
        .certificate_authority(authority)
        .build();
    client.unwrap().list(&LeaseFilter::default()).await.map(|page| page.leases.len())
}

#[tokio::test]
async fn server_certificate_must_be_signed_by_the_configured_ca() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, other) = (folder.path().join("ours.pem"), folder.path().join("other.pem"));
    let issuer = authority(&ours);
    authority(&other);
    let port = serve(&issuer, "localhost").await;
    assert_eq!(list(&format!("https://localhost:{port}"), &ours).await.unwrap(), 0);
    let error = list(&format!("https://localhost:{port}"), &other).await.expect_err("a stranger");
    assert!(
        matches!(error, Error::Unreachable { .. }) && error.to_string().contains("certificate"),
        "{error}"
    );
    // Vouched for, but for another name.
    let error = list(&format!("https://127.0.0.1:{port}"), &ours).await.expect_err("another name");
    assert!(
        matches!(error, Error::Unreachable { .. }) && error.to_string().contains("certificate"),
        "{error}"
    );
}
