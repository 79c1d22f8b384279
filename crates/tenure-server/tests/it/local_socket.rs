//! The local socket: who may use it, and whose it is.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tenure_server::{LocalSocketError, LocalSocketSettings, StartError};
use tenure_testkit::{TestServer, lease_request, request_on_socket};

fn socket_settings(path: &Path) -> Option<LocalSocketSettings> {
    Some(LocalSocketSettings { path: path.into(), users: Vec::new(), is_explicit: true })
}

fn socket_in(folder: &Path) -> PathBuf {
    folder.join("runtime/tenure.sock")
}

/// A folder that nobody else can enter, whatever the usual permissions are.
fn private() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    folder
}

fn start_with_socket() -> TestServer {
    let folder = tempfile::tempdir().unwrap();
    let path = socket_in(folder.path());
    TestServer::start_in(folder, |settings| settings.socket = socket_settings(&path)).unwrap()
}

#[test]
fn the_owner_of_the_server_is_admin_on_the_local_socket_without_a_token() {
    let server = start_with_socket();
    let path = socket_in(server.folder.path());
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
    assert_eq!(request_on_socket(&path, "GET /v1/tokens", &[], "").status, 200, "an admin");
    let request = lease_request("db:1", "me", 60_000).to_string();
    assert_eq!(request_on_socket(&path, "POST /v1/leases", &[], &request).status, 201);
    // It is a principal of its own: the holder belongs to it.
    let other = tenure_testkit::lease_request("db:2", "me", 60_000);
    server.post("/v1/leases", &other).expect_problem(403, "HOLDER_TAKEN");
    let _folder = server.stop();
    assert!(!path.exists(), "a server that stops takes its socket away");
}

#[test]
fn a_token_on_the_local_socket_is_checked() {
    let server = start_with_socket();
    let path = socket_in(server.folder.path());
    let with = |header: &str| request_on_socket(&path, "GET /v1/leases", &[header], "");
    assert_eq!(with(&server.bearer()).status, 200);
    with("Authorization: Bearer tnr_wrong").expect_problem(401, "UNAUTHORIZED");
    with("Authorization: Basic x").expect_problem(401, "UNAUTHORIZED");
}

#[test]
fn the_local_socket_accepts_any_host_and_no_origin() {
    let server = start_with_socket();
    let path = socket_in(server.folder.path());
    for headers in [&[][..], &["Host: localhost"], &["Host: whatever.example"]] {
        assert_eq!(request_on_socket(&path, "GET /healthz", headers, "").status, 200, "{headers:?}");
    }
    for origin in ["null", "http://localhost", &format!("http://{}", server.address)] {
        let header = format!("Origin: {origin}");
        request_on_socket(&path, "GET /healthz", &[&header], "").expect_problem(403, "FOREIGN_ORIGIN");
    }
}

#[test]
fn a_server_may_listen_on_the_local_socket_alone_but_not_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = socket_in(folder.path());
    let server = TestServer::start_in(folder, |settings| {
        (settings.listen, settings.socket) = (None, socket_settings(&path))
    });
    assert_eq!(request_on_socket(&path, "GET /v1/leases", &[], "").status, 200);
    let folder = server.unwrap().stop();
    let refused = TestServer::start_in(folder, |settings| settings.listen = None).map(|_| ()).unwrap_err();
    assert!(matches!(refused, StartError::Nowhere), "{refused}");
}

fn refused(folder: TempDir, place: Option<LocalSocketSettings>) -> LocalSocketError {
    match TestServer::start_in(folder, |settings| settings.socket = place).map(|_| ()) {
        Err(StartError::Socket(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_socket_of_a_dead_server_is_replaced_and_of_a_running_one_is_not() {
    let server = start_with_socket();
    let path = socket_in(server.folder.path());
    let error = refused(tempfile::tempdir().unwrap(), socket_settings(&path));
    assert!(matches!(error, LocalSocketError::Taken(_)), "{error}");
    assert_eq!(
        request_on_socket(&path, "GET /healthz", &[], "").status,
        200,
        "the living one was not disturbed"
    );
    // Where nobody chose it and there is another way in, it is done without.
    let unchosen = socket_settings(&path).map(|place| LocalSocketSettings { is_explicit: false, ..place });
    let other = TestServer::start_with(|settings| settings.socket = unchosen);
    assert_eq!(other.get("/healthz").status, 200);
    drop(server.stop());
    // What a killed server leaves behind.
    let folder = private();
    let path = folder.path().join("left.sock");
    drop(UnixListener::bind(&path).unwrap());
    let _server = TestServer::start_in(folder, |settings| settings.socket = socket_settings(&path)).unwrap();
    assert_eq!(request_on_socket(&path, "GET /healthz", &[], "").status, 200);
}

#[test]
fn a_foreign_socket_or_file_is_not_replaced() {
    let folder = private();
    let path = folder.path().join("theirs.sock");
    let theirs = UnixListener::bind(&path).unwrap();
    assert!(matches!(
        refused(tempfile::tempdir().unwrap(), socket_settings(&path)),
        LocalSocketError::Taken(_)
    ));
    drop(theirs);
    let file = folder.path().join("file");
    fs::write(&file, "precious").unwrap();
    assert!(matches!(
        refused(tempfile::tempdir().unwrap(), socket_settings(&file)),
        LocalSocketError::NotASocket(_)
    ));
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
}

#[test]
fn a_socket_folder_with_insecure_permissions_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().join("tenure.sock");
    let error = refused(tempfile::tempdir().unwrap(), socket_settings(&path));
    assert!(matches!(error, LocalSocketError::InsecureFolder { mode: 0o755, .. }), "{error}");
    // With other users it is what is wanted, as long as they cannot put something else there.
    let with_users =
        socket_settings(&path).map(|place| LocalSocketSettings { users: vec![4_000_000], ..place });
    let _server = TestServer::start_with(|settings| settings.socket = with_users.clone());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o666);
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    let error = refused(tempfile::tempdir().unwrap(), with_users);
    assert!(matches!(error, LocalSocketError::InsecureFolder { mode: 0o777, .. }), "{error}");
}
