//! `tenure verify` says what there is, and finds what is wrong.

use std::fs;

use tenure_testkit::sample_ledger::{SampleLedger, acquire, start_server};
use tenure_testkit::{run_command, tenure_command};

#[test]
fn intact_ledger_is_described_with_code_0() {
    let history = SampleLedger::create(&[]);
    let found = history.run(&["verify", "--json"]).expect_json();
    let log = history.events();
    let events = log.len() as u64;
    assert_eq!((found["firstSeq"].as_u64(), found["lastSeq"].as_u64()), (Some(1), Some(events)));
    assert_eq!((found["epoch"].as_u64(), found["form"].as_u64()), (Some(1), Some(1)));
    assert_eq!((found["segments"].as_u64(), found["tornTail"].as_bool()), (Some(1), Some(false)));
    assert_eq!(found["addedUpFromSeq"], 1);
    let key = &log.iter().find(|event| event["type"] == "key.added").unwrap()["key"];
    assert_eq!(found["keys"][0]["id"], key["id"]);
    assert_eq!(found["keys"][0]["publicKey"], key["publicKey"]);
    let text = history.run(&["verify"]);
    assert_eq!((text.code, text.errors.as_str()), (Some(0), ""));
    for expected in
        [found["ledger"].as_str().unwrap(), found["headHash"].as_str().unwrap(), key["id"].as_str().unwrap()]
    {
        assert!(text.output.contains(expected), "{}", text.output);
    }
    assert!(text.output.contains(&format!("1 to {events}\n")), "{}", text.output);
}

#[test]
fn verify_runs_beside_a_server_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let served = start_server(folder.path(), &[("TENURE_LEDGER_SEGMENT_SIZE", "4096")]);
    let data = folder.path().join("data");
    let mut last = 0;
    for number in 0..20 {
        acquire(&served, &format!("thing:{number}"), "a", 60_000);
        let found =
            run_command(tenure_command(folder.path()).args(["verify", "--json", "--data"]).arg(&data))
                .expect_json();
        assert!(found["lastSeq"].as_u64().unwrap() > last, "{found}");
        last = found["lastSeq"].as_u64().unwrap();
    }
    drop(served);
    let content = |name: &str| fs::read(data.join(name)).ok();
    let mut names: Vec<_> =
        fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let before: Vec<_> = names.iter().map(|name| content(name)).collect();
    assert_eq!(
        run_command(tenure_command(folder.path()).args(["verify", "--data"]).arg(&data)).code,
        Some(0)
    );
    let mut after: Vec<_> =
        fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    after.sort();
    assert_eq!(names, after);
    assert!(names.iter().map(|name| content(name)).eq(before), "a killed server's ledger is not repaired");
}

#[test]
fn damage_is_1_with_file_byte_record_and_reason() {
    let history = SampleLedger::create(&[]);
    let segment = &history.ledger_files(".segment")[0];
    let whole = fs::read(segment).unwrap();
    for byte in [0, 600, 1_100, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[byte] ^= 4;
        fs::write(segment, bytes).unwrap();
        let found = history.run(&["verify"]);
        assert_eq!((found.code, found.output.as_str()), (Some(1), ""), "byte {byte}");
        for part in ["0000000000000001.segment is damaged at byte ", "in the record after event ", ": "] {
            assert!(found.errors.contains(part), "{}", found.errors);
        }
    }
    fs::write(segment, &whole[..whole.len() - 512]).unwrap();
    assert_eq!(history.run(&["verify"]).code, Some(1), "a part is missing");
    fs::write(segment, whole).unwrap();
    assert_eq!(history.run(&["verify"]).code, Some(0), "whole again");
}

#[test]
fn torn_tail_is_reported_and_is_no_damage() {
    let history = SampleLedger::create(&[]);
    let segment = &history.ledger_files(".segment")[0];
    let mut bytes = fs::read(segment).unwrap();
    let end = bytes.chunks(512).rposition(|sector| sector[0] != 0).unwrap() + 1;
    // How the second sector of a record begins. The first never came to the disk.
    bytes[end * 512 + 512] = 0xE3;
    fs::write(segment, bytes).unwrap();
    let found = history.run(&["verify", "--json"]).expect_json();
    assert_eq!(found["tornTail"], true);
    assert_eq!(found["lastSeq"].as_u64(), Some(history.events().len() as u64));
}

#[test]
fn unreadable_ledger_is_69_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    for (name, part) in [("absent", "absent cannot be read"), ("empty", "there is no ledger in ")] {
        for command in [&["verify"][..], &["replay", "--at", "last"], &["log"], &["passport", "key"]] {
            let found = run_command(tenure_command(folder.path()).args(command).args(["--data", name]));
            assert_eq!((found.code, found.output.as_str()), (Some(69), ""), "{command:?}: {}", found.errors);
            assert!(found.errors.contains(part) && found.errors.contains("--data"), "{}", found.errors);
        }
    }
    assert_eq!(fs::read_dir(folder.path().join("empty")).unwrap().count(), 0, "not even a lock");
    assert!(!folder.path().join("absent").exists());
    let nowhere = run_command(tenure_command(folder.path()).env_remove("HOME").arg("verify"));
    assert_eq!(nowhere.code, Some(78), "{}", nowhere.errors);
}
