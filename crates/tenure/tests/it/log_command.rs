//! `tenure log` shows what happened.

use std::io::{BufRead as _, BufReader, Read as _};

use serde_json::Value;
use tenure_testkit::sample_ledger::{SampleLedger, acquire, start_server};
use tenure_testkit::tenure_command;

#[test]
fn every_event_is_shown_in_order_with_its_fields() {
    let history = SampleLedger::create(&[]);
    let log = history.events();
    assert!((1..).zip(&log).all(|(seq, event)| event["seq"] == seq), "{log:?}");
    let of = |kind: &str| -> Vec<&Value> { log.iter().filter(|event| event["type"] == kind).collect() };
    let issued = of("lease.issued");
    assert_eq!(issued.len(), 3);
    let lease = &issued[1]["lease"];
    assert_eq!((&lease["resource"], &lease["holder"]), (&"deploy:prod".into(), &"ci-42".into()));
    assert_eq!((&lease["mode"], &lease["ttlMs"]), (&"exclusive".into(), &3_600_000.into()));
    assert_eq!(lease["id"], history.held["lease"]["id"]);
    let renewed = &of("lease.renewed")[0]["lease"];
    assert_eq!(renewed["id"], history.held["lease"]["id"]);
    assert_eq!(renewed["expiresAt"], history.held["lease"]["expiresAt"], "the time that the server said");
    let released = of("lease.released")[0];
    assert_eq!(released["lease"]["id"], history.released["lease"]["id"]);
    assert_eq!((&released["reason"], &released["actor"]), (&"COMPLETED".into(), &"größer".into()));
    assert_eq!(of("lease.expired")[0]["lease"]["id"], history.expired["lease"]["id"]);
    assert_eq!(of("key.added").len(), 1);
    assert_eq!(issued[1]["at"], history.held["lease"]["acquiredAt"]);
    assert!(!history.run(&["log", "--json"]).output.contains("nonce"));
}

#[test]
fn text_lines_show_the_same_events_as_json() {
    let history = SampleLedger::create(&[]);
    let text = history.run(&["log"]);
    assert_eq!((text.code, text.errors.as_str()), (Some(0), ""));
    let log = history.events();
    assert_eq!(text.output.lines().count(), log.len());
    for (line, event) in text.output.lines().zip(&log) {
        for part in
            [&event["seq"].to_string(), event["type"].as_str().unwrap(), event["at"].as_str().unwrap_or("-")]
        {
            assert!(line.contains(part), "{line}: {event}");
        }
        if let Some(id) = event["lease"]["id"].as_str() {
            assert!(line.contains(id), "{line}");
        }
    }
    let released = text.output.lines().find(|line| line.contains("lease.released")).unwrap();
    assert!(released.contains("holder=größer") && released.contains("reason=COMPLETED"), "{released}");
}

#[test]
fn from_and_limit_select_a_range() {
    let history = SampleLedger::create(&[]);
    let log = history.events();
    let part = history.run(&["log", "--json", "--from", "3", "--limit", "2"]);
    let part: Vec<Value> = part.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(part, log[2..4]);
    assert_eq!(history.run(&["log", "--from", "100000"]).output, "");
    assert_eq!(history.run(&["log", "--limit", "0"]).output, "");
}

#[test]
fn closed_output_pipe_is_not_an_error() {
    let history = SampleLedger::create(&[]);
    let served = start_server(history.folder.path(), &[]);
    // More than fits into a pipe.
    for number in 0..1_200 {
        acquire(&served, &format!("thing:{number}"), "a", 3_600_000);
    }
    served.stop();
    let mut command = tenure_command(history.folder.path());
    let mut child = command.args(["log", "--json", "--data"]).arg(history.data()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.starts_with('{'), "{line}");
    drop(output);
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!((child.wait().unwrap().code(), errors.as_str()), (Some(0), ""));
}
