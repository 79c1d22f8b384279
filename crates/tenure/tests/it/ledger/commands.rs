//! Copies of a ledger: what they are good for, and what is refused.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tenure_testkit::sample_ledger::{SampleLedger, acquire, start_server, try_acquire};
use tenure_testkit::{CommandOutput, run_command, run_expecting_failure, serve_command, tenure_command};

const SKIPPED_FENCES: u64 = 1 << 40;

fn ledger(folder: &Path, arguments: &[&str]) -> CommandOutput {
    run_command(tenure_command(folder).arg("ledger").args(arguments).args(["--data", "data"]))
}

/// Puts the copy in the place of the data, and keeps it.
fn put_back(folder: &Path) {
    fs::remove_dir_all(folder.join("data")).unwrap();
    let copied = Command::new("cp").arg("-a").args([folder.join("copy"), folder.join("data")]).status();
    assert!(copied.unwrap().success());
}

fn fence(granted: &Value) -> u64 {
    granted["lease"]["fence"].as_u64().unwrap()
}

#[test]
fn restored_copy_never_reuses_a_fence() {
    let history = SampleLedger::create(&[]);
    let folder = history.folder.path();
    // While it is served.
    let served = start_server(folder, &[]);
    let copied = ledger(folder, &["copy", "--to", "copy", "--json"]).expect_json();
    let of_the_original = fence(&acquire(&served, "after:copy", "ci-42", 60_000));
    served.stop();
    assert!(copied["lastSeq"].as_u64().unwrap() < history.events().len() as u64);
    assert_eq!(run_command(tenure_command(folder).args(["verify", "--data", "copy"])).code, Some(0));

    put_back(folder);
    let (code, errors) = run_expecting_failure(&mut serve_command(folder));
    assert_eq!(code, 69, "{errors}");
    assert!(errors.contains("is a copy") && errors.contains("tenure ledger restored"), "{errors}");
    let moved = ledger(folder, &["moved"]);
    assert_eq!((moved.code, moved.output.as_str()), (Some(1), ""), "{}", moved.errors);
    assert!(moved.errors.contains("tenure ledger restored"), "{}", moved.errors);

    let restored = ledger(folder, &["restored", "--json"]).expect_json();
    assert_eq!((&restored["epoch"], &restored["heldBackMs"]), (&2.into(), &86_400_000.into()));
    assert_eq!(restored["copyEndedAtSeq"], copied["lastSeq"]);
    let first = restored["firstFence"].as_u64().unwrap();
    assert!(first > SKIPPED_FENCES && first > of_the_original, "{first}");
    let served = start_server(folder, &[]);
    let rejection = try_acquire(&served, "new:thing", "ci-42", 60_000);
    assert_eq!(rejection.status_and_code(), (503, "HELD_BACK"), "{rejection:?}");
    served.stop();

    // The same copy once more: other numbers.
    put_back(folder);
    let again = ledger(folder, &["restored", "--nobody-holds", "--json"]).expect_json();
    assert_eq!((&again["epoch"], &again["heldBackMs"], &again["leases"]), (&3.into(), &0.into(), &1.into()));
    assert!(again["firstFence"].as_u64().unwrap() > first, "{again}");
    let served = start_server(folder, &[]);
    let granted = acquire(&served, "deploy:prod", "somebody", 60_000);
    assert_eq!(fence(&granted), again["firstFence"].as_u64().unwrap());
    assert!(fence(&granted) > SKIPPED_FENCES && fence(&granted) > of_the_original);
    served.stop();
    let found = history.run(&["verify", "--json"]).expect_json();
    assert_eq!((&found["epoch"], found["keys"].as_array().unwrap().len()), (&3.into(), 2));
    assert!(found["keys"][0]["retiredSeq"].is_u64() && found["keys"][1]["retiredSeq"].is_null(), "{found}");
    let kept = history.run(&["passport", "key"]);
    assert_eq!(kept.output.trim_end(), found["keys"][1]["publicKey"]);
    // Granted before the copy was made, and signed with the key that was retired since.
    let passport = history.held["passport"].as_str().unwrap();
    let old = run_command(tenure_command(folder).args([
        "passport",
        "verify",
        passport,
        "--json",
        "--keys-from",
        "data",
    ]))
    .expect_json();
    assert_eq!(old["keyRetiredSeq"], found["keys"][0]["retiredSeq"]);
    let state = history.run(&["replay", "--at", "last", "--json"]).expect_json();
    assert_eq!((&state["live"], &state["secondOpinion"]), (&1.into(), &true.into()), "{state}");
}

#[test]
fn restore_prints_its_consequences() {
    let history = SampleLedger::create(&[]);
    let folder = history.folder.path();
    let copied = ledger(folder, &["copy", "--to", "copy"]);
    assert!(copied.code == Some(0) && copied.output.contains("as safe as the original"), "{}", copied.output);
    put_back(folder);
    let above = ledger(folder, &["restored", "--above", "5000000000000"]);
    assert_eq!((above.code, above.errors.as_str()), (Some(0), ""));
    let first = 5_000_000_000_000 + SKIPPED_FENCES + 1;
    for part in
        ["epoch 2", &format!("can follow is {first}:"), "for 1 day, until 20", "must never be started again"]
    {
        assert!(above.output.contains(part), "{part}: {}", above.output);
    }
    let exists = ledger(folder, &["copy", "--to", "copy"]);
    assert_eq!((exists.code, exists.output.as_str()), (Some(1), ""), "{}", exists.errors);
    assert!(exists.errors.contains("exists already"), "{}", exists.errors);
    assert_eq!(ledger(folder, &["restored", "--above", "9007199254740992"]).code, Some(64));
    assert_eq!(
        ledger(folder, &["restored", "--above", "9007199254740991"]).code,
        Some(1),
        "no numbers are left"
    );
}

#[test]
fn ledger_in_use_is_not_changed() {
    let history = SampleLedger::create(&[]);
    let folder = history.folder.path();
    let _served = start_server(folder, &[]);
    for command in ["moved", "restored"] {
        let refused = ledger(folder, &[command]);
        assert_eq!((refused.code, refused.output.as_str()), (Some(69), ""), "{command}: {}", refused.errors);
        assert!(refused.errors.contains("another process is using"), "{}", refused.errors);
    }
    let copied = ledger(folder, &["copy", "--to", "copy"]);
    assert_eq!(copied.code, Some(0), "{}", copied.errors);
    let elsewhere = run_command(tenure_command(folder).args(["ledger", "restored", "--data", "copy"]));
    assert_eq!(elsewhere.code, Some(69), "{}", elsewhere.errors);
    assert!(elsewhere.errors.contains("from another directory"), "{}", elsewhere.errors);
}

#[test]
fn ledger_of_another_machine_is_moved() {
    let history = SampleLedger::create(&[]);
    let folder = history.folder.path();
    let here = ledger(folder, &["moved", "--json"]).expect_json();
    assert_eq!(here["moved"], false);
    let path = history.data().join("identity");
    let text = fs::read_to_string(&path).unwrap();
    let (before, _) = text.split_once("machine ").unwrap();
    let fields = format!("{before}machine {}\n", "0".repeat(31) + "1");
    fs::write(&path, format!("{fields}sum {:08x}\n", crc32c::crc32c(fields.as_bytes()))).unwrap();
    assert_eq!(run_expecting_failure(&mut serve_command(folder)).0, 69);
    let moved = ledger(folder, &["moved"]);
    assert_eq!((moved.code, moved.errors.as_str()), (Some(0), ""));
    assert!(moved.output.contains("belongs to this machine now"), "{}", moved.output);
    start_server(folder, &[]).stop();
}

#[test]
fn configuration_error_is_78_and_missing_ledger_is_69() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = run_command(
        tenure_command(folder.path()).env("TENURE_LEDGER_RESERVE", "much").args(["ledger", "restored"]),
    );
    assert_eq!(wrong.code, Some(78), "{}", wrong.errors);
    fs::create_dir(folder.path().join("data")).unwrap();
    for arguments in [&["moved"][..], &["restored"], &["copy", "--to", "copy"]] {
        let refused = ledger(folder.path(), arguments);
        assert_eq!(refused.code, Some(69), "{arguments:?}: {}", refused.errors);
        assert!(refused.errors.contains("there is no ledger in"), "{}", refused.errors);
    }
    assert_eq!(fs::read_dir(folder.path().join("data")).unwrap().count(), 0, "nothing is left behind");
    assert!(!folder.path().join("copy").exists());
}
