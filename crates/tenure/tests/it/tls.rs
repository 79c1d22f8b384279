//! `tenure serve` with a certificate.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tenure_testkit::{LIMIT, ServerProcess, run_expecting_failure, serve_command, wait_until};

fn certificate(folder: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    fs::write(folder.join("server.pem"), made.cert.pem()).unwrap();
    fs::write(folder.join("server.key"), made.signing_key.serialize_pem()).unwrap();
    fs::set_permissions(folder.join("server.key"), Permissions::from_mode(0o600)).unwrap();
    made.cert.der().clone()
}

/// The beginning of the answer, if the server shows this certificate.
fn ask(address: &str, trusted: &CertificateDer<'static>) -> Option<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let mut stream = StreamOwned::new(connection, stream);
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

#[test]
fn certificate_is_reloaded_on_sighup() {
    let folder = tempfile::tempdir().unwrap();
    let old = certificate(folder.path());
    let mut command = serve_command(folder.path());
    command.env("TENURE_TLS_CERTIFICATE", "server.pem").env("TENURE_TLS_KEY", "server.key");
    let served = ServerProcess::start(&mut command);
    let is_shown =
        |certificate| ask(&served.address, certificate).is_some_and(|answer| answer.contains("200 OK"));
    assert!(is_shown(&old));
    let new = certificate(folder.path());
    assert!(is_shown(&old) && !is_shown(&new));
    served.signal("HUP");
    wait_until("the new certificate is shown", || is_shown(&new));
    fs::write(folder.path().join("server.pem"), "broken").unwrap();
    served.signal("HUP");
    assert!(is_shown(&new), "what cannot be used changes nothing");
    served.signal("TERM");
    let (code, _, errors) = served.wait_for_exit();
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("the certificate was read again"), "{errors}");
}

#[test]
fn key_readable_by_other_users_is_78() {
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path());
    fs::set_permissions(folder.path().join("server.key"), Permissions::from_mode(0o644)).unwrap();
    let mut command = serve_command(folder.path());
    command.env("TENURE_TLS_CERTIFICATE", "server.pem").env("TENURE_TLS_KEY", "server.key");
    let (code, errors) = run_expecting_failure(&mut command);
    assert_eq!(code, 78, "{errors}");
    assert!(errors.contains("server.key") && errors.contains("chmod 600"), "{errors}");
    command.env_remove("TENURE_TLS_KEY");
    let (code, errors) = run_expecting_failure(&mut command);
    assert_eq!(code, 78, "{errors}");
    assert!(errors.contains("no `tls.key`"), "{errors}");
}
