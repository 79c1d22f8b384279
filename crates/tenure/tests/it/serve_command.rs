//! A server from its start to its end.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use tenure_testkit::{ServerProcess, serve_command};

const LEASE_REQUEST: &str = r#"{"resource":"deploy:prod","holder":"ci-42","ttlMs":60000}"#;

#[test]
fn server_prints_its_address_and_shuts_down_cleanly() {
    let folder = tempfile::tempdir().unwrap();
    for signal in ["TERM", "INT"] {
        let served = ServerProcess::start(&mut serve_command(folder.path()));
        assert!(served.address.starts_with("127.") && !served.address.ends_with(":0"));
        let token = fs::read_to_string(folder.path().join("data/admin.token")).unwrap();
        assert_eq!(served.request("GET /v1/leases", token.trim_end(), "").status, 200);
        served.signal(signal);
        let (code, output, errors) = served.wait_for_exit();
        let socket = format!("local socket at {}\n", folder.path().join("tenure/tenure.sock").display());
        assert_eq!((code, output, errors.as_str()), (Some(0), socket, ""));
        assert!(folder.path().join("data/clean").exists(), "the ledger was closed");
    }
}

#[test]
fn first_start_writes_a_token_readable_by_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let served = ServerProcess::start(&mut serve_command(folder.path()));
    let mode = |name: &str| data.join(name).metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(""), mode("admin.token"), mode("token.key")), (0o700, 0o600, 0o600));
    let token = fs::read_to_string(data.join("admin.token")).unwrap();
    assert!(token.starts_with("tenure_admin_"));
    served.signal("TERM");
    let (_, output, errors) = served.wait_for_exit();
    assert!(!output.contains(token.trim_end()) && !errors.contains(token.trim_end()));
}

#[test]
fn preset_admin_token_is_accepted_and_the_client_token_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = serve_command(folder.path());
    command.env("TENURE_ADMIN_TOKEN", "0123456789abcdef").env("TENURE_TOKEN", "fedcba9876543210");
    let served = ServerProcess::start(&mut command);
    assert_eq!(served.request("GET /v1/leases", "0123456789abcdef", "").status, 200);
    assert_eq!(served.request("GET /v1/leases", "fedcba9876543210", "").status, 401);
    assert!(!folder.path().join("data/admin.token").exists());
}

#[test]
fn killed_server_keeps_what_it_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let served = ServerProcess::start(&mut serve_command(folder.path()));
    let admin = fs::read_to_string(folder.path().join("data/admin.token")).unwrap();
    let admin = admin.trim_end();
    let held = served.request("POST /v1/leases", admin, LEASE_REQUEST).held_lease();
    served.kill();
    let served = ServerProcess::start(&mut serve_command(folder.path()));
    assert_eq!(served.request("POST /v1/leases", admin, LEASE_REQUEST).status, 409);
    let line = format!("POST /v1/leases/{}/renew", held.id);
    assert_eq!(served.request(&line, admin, &json!({ "token": held.token }).to_string()).status, 200);
}

#[test]
fn failing_disk_ends_the_server_with_code_74() {
    let folder = tempfile::tempdir().unwrap();
    let served = ServerProcess::start(serve_command(folder.path()).env("TENURE_LEDGER_SEGMENT_SIZE", "4096"));
    let admin = fs::read_to_string(folder.path().join("data/admin.token")).unwrap();
    // Without its directory there is no next file, which is needed soon.
    fs::rename(folder.path().join("data"), folder.path().join("elsewhere")).unwrap();
    let request = |number: u32| format!(r#"{{"resource":"db:{number}","holder":"a","ttlMs":60000}}"#);
    let failed = (0..1_000)
        .any(|number| served.request("POST /v1/leases", admin.trim_end(), &request(number)).status == 503);
    assert!(failed, "the disk must fail at some time");
    let (code, _, errors) = served.wait_for_exit();
    assert_eq!(code, Some(74), "{errors}");
    assert!(errors.contains("the ledger could not be written") && errors.contains("because: "), "{errors}");
}

#[test]
fn witness_outside_of_the_data_directory_rejects_an_older_copy() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copy) = (folder.path().join("data"), folder.path().join("copy"));
    ServerProcess::start(&mut serve_command(folder.path())).stop();
    let copied = std::process::Command::new("cp").arg("-a").args([&data, &copy]).status().unwrap();
    assert!(copied.success());
    ServerProcess::start(&mut serve_command(folder.path())).stop();
    fs::remove_dir_all(&data).unwrap();
    fs::rename(&copy, &data).unwrap();
    let (code, errors) = tenure_testkit::run_expecting_failure(&mut serve_command(folder.path()));
    assert_eq!(code, 69, "{errors}");
    assert!(
        errors.contains("this is an older copy") && errors.contains("tenure ledger restored"),
        "{errors}"
    );
    let witnesses = fs::read_dir(folder.path().join(".local/state/tenure-witness")).unwrap();
    assert_eq!(witnesses.count(), 1);
}

#[test]
fn server_runs_with_closed_output_pipes() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut command = serve_command(folder.path());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    drop(child.stderr.take());
    // Its token is there when the ledger is open, and it ends in good order only if it did not panic.
    while !data.join("admin.token").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::yield_now();
    }
    tenure_testkit::signal(child.id(), "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
