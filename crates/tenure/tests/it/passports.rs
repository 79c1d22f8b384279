//! `tenure passport` needs neither ledger nor server.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tenure_ledger::signing::{Passport, PublicKey, TrustedKeys};
use tenure_testkit::sample_ledger::SampleLedger;
use tenure_testkit::{CommandOutput, run_command, tenure_command};

/// Runs `tenure passport verify` where there is nothing else.
fn verify(arguments: &[&str]) -> CommandOutput {
    let nowhere = tempfile::tempdir().unwrap();
    let mut command = tenure_command(nowhere.path());
    let result = run_command(command.env_remove("HOME").args(["passport", "verify"]).args(arguments));
    assert_eq!(fs::read_dir(nowhere.path()).unwrap().count(), 0);
    result
}

fn key_and_passport(history: &SampleLedger) -> (String, String) {
    let key = history.run(&["passport", "key"]);
    assert_eq!((key.code, key.output.lines().count()), (Some(0), 1), "{}", key.errors);
    (key.output.trim_end().to_owned(), history.held["passport"].as_str().unwrap().to_owned())
}

#[test]
fn genuine_passport_shows_what_was_granted() {
    let history = SampleLedger::create(&[]);
    let (key, passport) = key_and_passport(&history);
    let found = verify(&[&passport, "--key", &key, "--json"]).expect_json();
    let lease = &history.held["lease"];
    assert_eq!((&found["leaseId"], &found["fence"]), (&lease["id"], &lease["fence"]));
    assert_eq!((&found["resource"], &found["holder"]), (&"deploy:prod".into(), &"ci-42".into()));
    let renewed = history.events().into_iter().find(|event| event["type"] == "lease.renewed").unwrap();
    assert_eq!(found["untilTick"], renewed["lease"]["expiresTick"]);
    assert_eq!(found["fromTick"], renewed["tick"]);
    let keys = history.run(&["passport", "key", "--json"]).expect_json();
    assert_eq!((&keys["keys"][0]["id"], &keys["ledger"]), (&found["keyId"], &found["ledger"]));
    let text = verify(&[&passport, "--key", &key]);
    assert!(text.output.contains("deploy:prod") && text.output.contains("does not prove"), "{}", text.output);
    let from_ledger = verify(&[&passport, "--keys-from", history.data().to_str().unwrap()]);
    assert_eq!((from_ledger.code, from_ledger.output), (Some(0), text.output));
}

#[test]
fn passport_is_read_from_standard_input() {
    let history = SampleLedger::create(&[]);
    let (key, passport) = key_and_passport(&history);
    for arguments in [&["--json"][..], &["-", "--json"]] {
        let mut command = tenure_command(history.folder.path());
        command.args(["passport", "verify", "--key", &key]).args(arguments).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        writeln!(child.stdin.take().unwrap(), "{passport}").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["holder"], "ci-42");
    }
}

#[test]
fn flipped_bit_in_a_passport_is_detected() {
    let history = SampleLedger::create(&[]);
    let (key, passport) = key_and_passport(&history);
    let trusted: TrustedKeys = [PublicKey::parse(&key).unwrap()].into_iter().collect();
    let proves = |text: &str| Passport::parse(text).and_then(|passport| passport.verify(&trusted)).is_ok();
    assert!(proves(&passport));
    let bytes = URL_SAFE_NO_PAD.decode(&passport).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(!proves(&URL_SAFE_NO_PAD.encode(bytes)), "bit {bit} of the bytes");
    }
    for bit in 0..passport.len() * 8 {
        let mut text = passport.clone().into_bytes();
        text[bit / 8] ^= 1 << (bit % 8);
        let Ok(text) = String::from_utf8(text) else { continue };
        assert!(!proves(&text), "bit {bit} of the text");
    }
}

#[test]
fn invalid_passport_exits_with_one_and_a_reason() {
    let history = SampleLedger::create(&[]);
    let (key, passport) = key_and_passport(&history);
    let (other_key, _) = key_and_passport(&SampleLedger::create(&[]));
    let mut altered = passport.clone().into_bytes();
    altered[40] = if altered[40] == b'A' { b'B' } else { b'A' };
    let altered = String::from_utf8(altered).unwrap();
    for (text, key, reason) in [
        (passport.as_str(), other_key.as_str(), "not among those that are trusted"),
        (&altered, &key, "the passport proves nothing"),
        ("no passport", &key, "not base64url"),
        ("", &key, "cut off"),
    ] {
        let found = verify(&[text, "--key", key]);
        assert_eq!((found.code, found.output.as_str()), (Some(1), ""), "{}", found.errors);
        assert!(found.errors.contains(reason), "{}", found.errors);
    }
    assert_eq!(verify(&[&passport]).code, Some(64), "no key is trusted by itself");
    assert_eq!(verify(&[&passport, "--key", "abc"]).code, Some(64));
    assert_eq!(verify(&[&passport, "--keys-from", "absent"]).code, Some(69));
}
