//! What a restart keeps, and what two servers may not do.

use std::error::Error as _;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use tenure_testkit::server::settings;
use tenure_testkit::{TestServer, lease_request};

#[test]
fn leases_tokens_and_keys_outlive_a_restart() {
    let server = TestServer::start();
    let (id, token) = server.acquire("db:1", "a", 60_000);
    let first = server.post_with_key("/v1/leases", "key", &lease_request("db:2", "a", 60_000)).json();
    let (gone, gone_token) = server.acquire("db:3", "a", 60_000);
    server.release(&gone, &gone_token);
    let admin = server.token.clone();
    let server = TestServer::start_in(server.stop(), |_| {}).unwrap();
    assert_eq!(server.token, admin);
    let renewed = server.renew(&id, &token).expect_status(200);
    assert_eq!(renewed["lease"]["renewalCount"], json!(1));
    let again = server.post_with_key("/v1/leases", "key", &lease_request("db:2", "a", 60_000)).json();
    assert_eq!((&again["token"], &again["lease"]["id"]), (&first["token"], &first["lease"]["id"]));
    assert_eq!(again["lease"]["acquiredAt"], first["lease"]["acquiredAt"]);
    assert_eq!(server.get(&format!("/v1/leases/{gone}")).json()["lease"]["end"], json!("COMPLETED"));
    let (next, _) = server.acquire("db:3", "b", 60_000);
    assert!(next.ends_with("-4"), "no fence is used twice: {next}");
}

#[test]
fn secrets_are_made_once_and_only_their_owner_reads_them() {
    let server = TestServer::start();
    let data = server.folder.path().join("data");
    assert!(server.token.starts_with("tenure_admin_"), "a prefix that scanners find");
    assert_eq!(server.token.len(), "tenure_admin_".len() + 43);
    for name in ["admin.token", "token.key"] {
        let mode = data.join(name).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "{name}");
    }
    assert_eq!(std::fs::read_to_string(data.join("token.key")).unwrap().trim_end().len(), 64);
}

// S3-35
#[test]
fn the_second_server_on_a_directory_says_that_there_is_a_first() {
    let server = TestServer::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let second = runtime.block_on(tenure_server::Server::start(settings(server.folder.path())));
    let refused = second.map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("another process is using") && refused.contains("--data"), "{refused}");
    assert_eq!(server.get("/readyz").status, 200);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let server = TestServer::start();
    let refused =
        TestServer::start_in(tempfile::tempdir().unwrap(), |settings| settings.listen = Some(server.address));
    let refused = refused.map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains(&server.address.to_string()), "{refused}");
    assert!(refused.source().is_some(), "what the system said");
}

#[test]
fn without_tls_only_loopback_addresses_are_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let refused =
        TestServer::start_in(folder, |settings| settings.listen = Some("0.0.0.0:0".parse().unwrap()));
    let refused = refused.map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("no TLS") && refused.contains("127.0.0.1"), "{refused}");
}

#[test]
fn a_damaged_ledger_fails_the_start() {
    let server = TestServer::start();
    server.acquire("db:1", "a", 60_000);
    let folder = server.stop();
    let path = folder.path().join("data/0000000000000001.segment");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[600] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let refused = TestServer::start_in(folder, |_| {}).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("0000000000000001.segment is damaged"), "{refused}");
}

#[test]
fn a_failed_start_releases_the_directory() {
    let server = TestServer::start();
    let key = server.folder.path().join("data/token.key");
    let folder = server.stop();
    let kept = std::fs::read(&key).unwrap();
    std::fs::write(&key, "half a k").unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let refused = runtime.block_on(tenure_server::Server::start(settings(folder.path())));
    let refused = refused.map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("token.key does not hold"), "{refused}");
    assert!(!refused.contains("half a k"), "{refused}");
    std::fs::write(&key, kept).unwrap();
    assert_eq!(TestServer::start_in(folder, |_| {}).unwrap().get("/readyz").status, 200);
}

#[test]
fn nothing_secret_is_in_the_ledger() {
    let server = TestServer::start();
    let (_, token) = server.acquire("db:1", "holder-in-the-ledger", 60_000);
    let admin = server.token.clone();
    let folder = server.stop();
    let key = std::fs::read_to_string(folder.path().join("data/token.key")).unwrap();
    let mut ledger = Vec::new();
    for entry in std::fs::read_dir(folder.path().join("data")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "segment") {
            ledger.extend(std::fs::read(path).unwrap());
        }
    }
    let holds = |text: &str| ledger.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("holder-in-the-ledger"), "the test looks in the right place");
    for secret in [token.as_str(), &admin, key.trim_end()] {
        assert!(!holds(secret));
    }
}
