//! Two servers for one ledger: the second is refused, wherever it looks for it.

use std::path::Path;
use std::process::Command;

use tenure_testkit::{ServerProcess, run_expecting_failure, serve_command, tenure_command};

/// A server on another directory, with the same home and so with the same witnesses.
fn serve_from(folder: &Path, data: &str) -> Command {
    let mut command = tenure_command(folder);
    command.args(["serve", "--listen", "127.0.0.1:0", "--data", data]);
    command
}

#[test]
fn second_server_on_the_same_directory_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let first = ServerProcess::start(&mut serve_command(folder.path()));
    let mut client = first.client();
    let held = client.acquire("db:1", 60_000, None).unwrap().held_lease();
    // By another name it is the same directory all the same.
    std::os::unix::fs::symlink(&data, folder.path().join("link")).unwrap();
    for name in ["data", "link", "./data/../data"] {
        let (code, errors) = run_expecting_failure(&mut serve_from(folder.path(), name));
        assert_eq!(code, 69, "{errors}");
        assert!(errors.contains("another process is using") && errors.contains("stop it first"), "{errors}");
        assert_eq!(client.renew(&held).unwrap().status, 200, "the first was not disturbed");
    }
    let next = client.acquire("db:2", 60_000, None).unwrap().held_lease();
    assert!(next.fence > held.fence);
    first.kill();
    // Nothing has to be cleared away: the lock ended with the process.
    let second = ServerProcess::start(&mut serve_command(folder.path()));
    let mut client = second.client();
    for lease in [held, next] {
        assert_eq!(client.show(&lease.id).unwrap().lease_state(), "ACTIVE");
    }
}

#[test]
fn copy_is_rejected_while_the_original_runs_and_after_it_advanced() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let first = ServerProcess::start(&mut serve_command(folder.path()));
    let mut client = first.client();
    let before = client.acquire("db:1", 60_000, None).unwrap().held_lease();
    let copied = Command::new("cp").arg("-r").args([&data, &folder.path().join("copy")]).status().unwrap();
    assert!(copied.success());

    let (code, errors) = run_expecting_failure(&mut serve_from(folder.path(), "copy"));
    assert_eq!(code, 69, "{errors}");
    assert!(errors.contains("in use by another process") && errors.contains("is a copy"), "{errors}");

    let after = client.acquire("db:2", 60_000, None).unwrap().held_lease();
    first.stop();
    let (code, errors) = run_expecting_failure(&mut serve_from(folder.path(), "copy"));
    assert_eq!(code, 69, "{errors}");
    assert!(
        errors.contains("this is an older copy") && errors.contains("tenure ledger restored"),
        "{errors}"
    );

    let first = ServerProcess::start(&mut serve_command(folder.path()));
    let mut client = first.client();
    for lease in [before, after] {
        assert_eq!(client.show(&lease.id).unwrap().lease_state(), "ACTIVE", "the original is as it was");
    }
}
