//! Starts that fail say what to do, and with which code.

use std::fs;
use std::net::TcpListener;

use tenure_testkit::{ServerProcess, run_expecting_failure, serve_command, tenure_command};

#[test]
fn invalid_command_line_is_64() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["serve", "--listne", "x"][..], &["serve", "--listen", "here"], &["sevre"], &[]] {
        let (code, errors) = run_expecting_failure(tenure_command(folder.path()).args(arguments));
        assert_eq!(code, 64, "{arguments:?}: {errors}");
    }
}

#[test]
fn public_address_without_tls_is_78() {
    let folder = tempfile::tempdir().unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7420"] {
        let (code, errors) = run_expecting_failure(
            tenure_command(folder.path()).args(["serve", "--listen", address, "--data", "data"]),
        );
        assert_eq!(code, 78, "{errors}");
        assert!(errors.contains("there is no TLS") && errors.contains("127.0.0.1:7420"), "{errors}");
    }
}

#[test]
fn invalid_configuration_is_78_with_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my.toml");
    for (content, wrong) in [
        ("color = 'red'", "`color`"),
        ("[ledger]\nsegmentsize = 1", "`ledger.segmentsize`"),
        ("listen = 'here'", "`listen`"),
        ("listen = ", "not TOML"),
    ] {
        fs::write(&file, content).unwrap();
        let (code, errors) = run_expecting_failure(
            tenure_command(folder.path()).args(["serve", "--data", "data", "--config", "my.toml"]),
        );
        assert_eq!(code, 78, "{errors}");
        assert!(errors.contains(wrong) && errors.contains("my.toml"), "{errors}");
    }
    let (code, errors) =
        run_expecting_failure(tenure_command(folder.path()).args(["serve", "--config", "absent.toml"]));
    assert_eq!(code, 78, "{errors}");
    assert!(errors.contains("absent.toml") && errors.contains("because: "), "{errors}");
    let (code, errors) =
        run_expecting_failure(serve_command(folder.path()).env("TENURE_ADMIN_TOKEN", "short-secret"));
    assert_eq!(code, 78, "{errors}");
    assert!(errors.contains("at least 16 characters") && !errors.contains("short-secret"), "{errors}");
    let (code, errors) = run_expecting_failure(tenure_command(folder.path()).env_remove("HOME").arg("serve"));
    assert_eq!(code, 78, "{errors}");
    assert!(errors.contains("say --data"), "{errors}");
}

#[test]
fn default_configuration_file_is_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("etc/tenure")).unwrap();
    let file = folder.path().join("etc/tenure/config.toml");
    fs::write(&file, "listen = '127.0.0.1:0'\ndata = 'from-the-file'\n[ledger]\nwitness = 'seen'\n").unwrap();
    let mut command = tenure_command(folder.path());
    let served = ServerProcess::start(command.arg("serve").env("XDG_CONFIG_HOME", folder.path().join("etc")));
    assert!(!served.address.ends_with(":7420"), "{}", served.address);
    assert!(folder.path().join("from-the-file/admin.token").exists());
    assert!(folder.path().join("seen").exists());
}

#[test]
fn port_in_use_is_69() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, errors) = run_expecting_failure(
        tenure_command(folder.path()).args(["serve", "--data", "data", "--listen", &address]),
    );
    assert_eq!(code, 69, "{errors}");
    assert!(errors.contains(&address) && errors.contains("because: "), "{errors}");
}

#[test]
fn directory_in_use_or_damaged_is_69() {
    let folder = tempfile::tempdir().unwrap();
    let served = ServerProcess::start(&mut serve_command(folder.path()));
    let (code, errors) = run_expecting_failure(&mut serve_command(folder.path()));
    assert_eq!(code, 69, "{errors}");
    assert!(errors.contains("another process is using") && errors.contains("--data"), "{errors}");
    served.stop();
    let segment = folder.path().join("data/0000000000000001.segment");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[600] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let (code, errors) = run_expecting_failure(&mut serve_command(folder.path()));
    assert_eq!(code, 69, "{errors}");
    assert!(errors.contains("0000000000000001.segment is damaged"), "{errors}");
    assert!(errors.contains("Nothing was changed") && errors.contains("tenure verify"), "{errors}");
}

#[test]
fn uncreatable_data_directory_is_69() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    // On any free port: whether another server listens on the default one must not matter.
    let (code, errors) = run_expecting_failure(tenure_command(folder.path()).args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data",
        "file/data",
    ]));
    assert_eq!(code, 69, "{errors}");
    assert!(errors.contains("file/data"), "{errors}");
}
