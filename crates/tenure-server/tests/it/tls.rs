//! TLS: a real handshake with certificates of our own.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tenure_server::{StartError, TlsError, TlsFiles};
use tenure_testkit::http::parse;
use tenure_testkit::{Response, TestServer};

/// Writes a certificate for these names, and its key, and says which one it is.
fn certificate(folder: &Path, names: &[&str]) -> CertificateDer<'static> {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let files = files(folder);
    fs::write(&files.certificate, made.cert.pem()).unwrap();
    let _ = fs::remove_file(&files.key);
    fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    fs::set_permissions(&files.key, Permissions::from_mode(0o600)).unwrap();
    made.cert.der().clone()
}

fn files(folder: &Path) -> TlsFiles {
    TlsFiles { certificate: folder.join("server.pem"), key: folder.join("server.key") }
}

/// On any address, which is what TLS is for.
fn start_with_tls(names: &[&str], hosts: &[&str]) -> (TestServer, CertificateDer<'static>) {
    let folder = tempfile::tempdir().unwrap();
    let trusted = certificate(folder.path(), names);
    let files = files(folder.path());
    let server = TestServer::start_in(folder, |settings| {
        settings.listen = Some("0.0.0.0:0".parse().unwrap());
        settings.tls = Some(files);
        settings.hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    });
    (server.unwrap(), trusted)
}

/// Asks over TLS, trusting this certificate alone. The port is added to `host`.
fn ask(
    server: &TestServer,
    trusted: &CertificateDer<'static>,
    name: &str,
    host: &str,
    path: &str,
) -> Result<Response, String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, connect(server));
    let port = server.address.port();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n{}\r\nConnection: close\r\n\r\n",
        server.bearer()
    );
    stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(|error| error.to_string())?;
    Ok(parse(&answer))
}

fn connect(server: &TestServer) -> TcpStream {
    let stream = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], server.address.port()))).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

#[test]
fn with_tls_requests_under_the_certificates_names_are_accepted() {
    let (server, trusted) = start_with_tls(&["tenure.example", "localhost"], &["other.example"]);
    assert!(server.url().starts_with("https://0.0.0.0:"), "{}", server.url());
    for host in ["tenure.example", "TENURE.example", "localhost", "127.0.0.1", "other.example"] {
        assert_eq!(
            ask(&server, &trusted, "tenure.example", host, "/v1/leases").unwrap().status,
            200,
            "{host}"
        );
    }
    for host in ["evil.example", "x.tenure.example", "10.0.0.1"] {
        let answer = ask(&server, &trusted, "tenure.example", host, "/v1/leases").unwrap();
        answer.expect_problem(421, "FOREIGN_HOST");
    }
}

#[test]
fn a_renewed_certificate_is_used_after_reload_and_an_invalid_one_is_not() {
    let (server, old) = start_with_tls(&["localhost"], &[]);
    let status =
        |trusted| ask(&server, trusted, "localhost", "localhost", "/healthz").map(|answer| answer.status);
    assert_eq!(status(&old), Ok(200));
    let new = certificate(server.folder.path(), &["localhost"]);
    assert_eq!(status(&old), Ok(200), "nobody has said that it should be read again");
    server.reload_tls().unwrap();
    assert_eq!(status(&new), Ok(200));
    assert!(status(&old).is_err(), "the old one is no longer shown");
    fs::write(files(server.folder.path()).key, "no key").unwrap();
    let error = server.reload_tls().unwrap_err();
    assert!(matches!(error, TlsError::Malformed { .. }), "{error}");
    assert_eq!(status(&new), Ok(200), "what was in use still is");
}

#[test]
fn invalid_tls_files_fail_the_start() {
    let refused = |change: &dyn Fn(&Path)| {
        let folder = tempfile::tempdir().unwrap();
        certificate(folder.path(), &["localhost"]);
        change(folder.path());
        let files = files(folder.path());
        match TestServer::start_in(folder, |settings| settings.tls = Some(files)).map(|_| ()) {
            Err(StartError::Tls(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    let error = refused(&|folder| {
        fs::set_permissions(files(folder).key, Permissions::from_mode(0o640)).unwrap();
    });
    assert!(matches!(error, TlsError::InsecureKeyPermissions { mode: 0o640, .. }), "{error}");
    let error = refused(&|folder| fs::remove_file(files(folder).certificate).unwrap());
    assert!(matches!(error, TlsError::Unreadable { .. }), "{error}");
    let error = refused(&|folder| fs::write(files(folder).certificate, "").unwrap());
    assert!(matches!(error, TlsError::Malformed { .. }), "{error}");
    let error = refused(&|folder| {
        let kept = fs::read(files(folder).certificate).unwrap();
        certificate(folder, &["localhost"]);
        fs::write(files(folder).certificate, kept).unwrap();
    });
    assert!(matches!(error, TlsError::Unusable { .. }), "{error}");
}

/// The read waits for 30 s at the most, and then fails: so this fails if the server keeps the connection.
#[test]
fn an_unfinished_handshake_times_out() {
    let (server, trusted) = start_with_tls(&["localhost"], &[]);
    let mut silent = connect(&server);
    let mut half = connect(&server);
    half.write_all(b"\x16\x03\x01").unwrap();
    for stream in [&mut silent, &mut half] {
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    let mut plain = connect(&server);
    plain.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "nothing goes out in the clear");
    assert_eq!(ask(&server, &trusted, "localhost", "localhost", "/healthz").unwrap().status, 200);
}
