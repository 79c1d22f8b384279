//! What the commands say of a ledger whose beginning was pruned.

use std::thread;
use std::time::Duration;

use serde_json::Value;
use tenure_testkit::sample_ledger::{SampleLedger, acquire, start_server};

/// A ledger that keeps as little as it can.
fn pruned() -> SampleLedger {
    let settings = [
        ("TENURE_LEDGER_SEGMENT_SIZE", "4096"),
        ("TENURE_LEDGER_CHECKPOINT_AFTER", "4"),
        ("TENURE_LEDGER_RETENTION_BYTES", "8192"),
    ];
    let history = SampleLedger::create(&settings);
    let served = start_server(history.folder.path(), &settings);
    let first = history.data().join("0000000000000001.segment");
    for number in 0..10_000 {
        acquire(&served, &format!("thing:{number}"), "a", 3_600_000);
        // Beside a server that prunes: whatever goes away meanwhile is no damage.
        if number % 8 == 0 {
            let found = history.run(&["verify"]);
            assert_eq!(found.code, Some(0), "{}", found.errors);
        }
        if !first.exists() {
            break;
        }
        thread::park_timeout(Duration::from_millis(5));
    }
    assert!(!first.exists(), "it must be pruned at some time");
    served.stop();
    history
}

#[test]
fn pruned_ledger_is_readable_and_missing_events_are_reported() {
    let history = pruned();
    let found = history.run(&["verify", "--json"]).expect_json();
    let (first, last) = (found["firstSeq"].as_u64().unwrap(), found["lastSeq"].as_u64().unwrap());
    assert!(first > 1, "{found}");
    let added_up_from = found["addedUpFromSeq"].as_u64().unwrap();
    assert!((first..=last + 1).contains(&added_up_from), "{found}");
    assert_eq!(found["keys"][0]["addedSeq"], 1, "a checkpoint remembers the keys");
    let text = history.run(&["verify"]);
    assert!(
        text.output.contains(&format!("from event {added_up_from} on; a signed checkpoint")),
        "{}",
        text.output
    );

    let log = history.run(&["log", "--json"]);
    assert_eq!(log.code, Some(0));
    assert!(log.errors.contains(&format!("the events before {first} were pruned")), "{}", log.errors);
    let events: Vec<Value> = log.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&events[0]["seq"], events.len() as u64), (&first.into(), last - first + 1));
    let in_this_century = |event: &Value| event["at"].as_str().is_none_or(|time| time.starts_with("20"));
    assert!(events.iter().all(in_this_century), "a checkpoint remembers which time a tick is");
    let from_first = history.run(&["log", "--from", &first.to_string()]);
    assert_eq!(from_first.errors, "", "nothing is missing from what was asked for");

    let early = history.run(&["replay", "--at", "1"]);
    assert_eq!((early.code, early.output.as_str()), (Some(1), ""));
    let tick = early.errors.split("; ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let earliest = history.run(&["replay", "--json", "--at", &tick]).expect_json();
    assert_eq!(earliest["secondOpinion"], false, "it cannot read what is gone");
    let before = (tick.parse::<u64>().unwrap() - 1).to_string();
    assert_eq!(history.run(&["replay", "--at", &before]).code, Some(1));
    let newest = history.run(&["replay", "--json", "--at", "last"]).expect_json();
    let held = newest["leases"].as_array().unwrap().iter().find(|lease| lease["resource"] == "deploy:prod");
    assert_eq!(held.unwrap()["id"], history.held["lease"]["id"]);

    let key = history.run(&["passport", "key"]);
    assert_eq!(key.output.trim_end(), found["keys"][0]["publicKey"]);
}
