//! Many want one file: one has it, the others wait once, stop and report.

use std::fs;

use serde_json::{Value, json};
use tenure_testkit::{FakeAgent, TestRepository, signal, unix_milliseconds, wait_until};

/// How many rounds each of the two agents has.
const ROUNDS: usize = 50;

// S4-15, S4-18, S4-19, S4-55
#[test]
fn concurrent_edits_of_one_file_are_never_both_allowed_and_none_is_lost() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    fs::write(repo.file("a"), "0\n").unwrap();
    let rounds = |name: &'static str| {
        let (repo, mut agent) = (&repo, FakeAgent::start_kind(&repo, name, "codex"));
        move || {
            let (mut allowed, mut denied) = (0, 0);
            for round in 0..ROUNDS {
                let session = format!("{name}-{round}");
                let result = agent.run_hook(&repo.patch_payload(&session, "a"));
                if result.is_allowed() {
                    // Read and written apart, so that whoever else is inside would be overwritten.
                    let line = "{ mkdir ../inside && n=$(cat a) && sleep 0.02 && echo $((n + 1)) > a && rmdir ../inside; }";
                    let wrote = agent.run_line(line);
                    assert_eq!(wrote.code, Some(0), "two are inside at once: {wrote:?}");
                    let mut event = repo.patch_payload(&session, "a");
                    event["hook_event_name"] = json!("PostToolUse");
                    event["tool_response"] = json!("Exit code: 0\n");
                    agent.run_hook(&event);
                    allowed += 1;
                } else {
                    assert!(result.denial_reason().contains("`a` was not changed"), "{result:?}");
                    denied += 1;
                }
                agent.run_hook(&repo.event_payload(&session, "SessionEnd"));
            }
            (allowed, denied)
        }
    };
    let (one, two) = std::thread::scope(|scope| {
        // Both agents are there before either begins.
        let (one, two) = (rounds("one"), rounds("two"));
        let (one, two) = (scope.spawn(one), scope.spawn(two));
        (one.join().unwrap(), two.join().unwrap())
    });
    assert!(one.0 > 0 && two.0 > 0 && one.1 + two.1 > 0, "they met: {one:?} {two:?}");
    assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), format!("{}\n", one.0 + two.0));
    assert!(repo.held_files().is_empty());
}

// S4-17, S4-44, S4-45, O-20
#[test]
fn free_file_is_granted_to_the_first_request_and_recorded() {
    let repo = TestRepository::with_retry_and_idle(60, 30);
    let mut one = FakeAgent::start(&repo, "one");
    one.run_hook(&repo.event_payload("s1", "SessionStart"));
    let free = repo.run(&["who", "a", "--json"]);
    assert_eq!(free.code, Some(1), "{free:?}");
    assert!(repo.held_files().is_empty());
    assert!(one.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    let files = repo.json(&["files", "--json"]);
    let record = &files[0];
    assert_eq!((&record["path"], &record["leaseState"]), (&json!("a"), &json!("OWNED")), "{files}");
    assert!(record["resource"].as_str().unwrap().ends_with("/a"), "{files}");
    let owner = format!("claude/s1@{}.", one.process_id());
    assert!(record["owner"]["holder"].as_str().unwrap().starts_with(&owner), "{files}");
    let time = |files: &Value, field: &str| unix_milliseconds(files[0][field].as_str().unwrap());
    // Whatever is heard is a heartbeat, and asking again is the same lease. What comes close together counts as one.
    wait_until("time goes on", || repo.json(&["files", "--json"])[0]["idleMs"].as_u64() > Some(1_000));
    assert!(one.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    let later = repo.json(&["files", "--json"]);
    assert_eq!(later[0]["acquiredAt"], record["acquiredAt"], "{later}");
    assert!(time(&later, "lastHeartbeatAt") > time(&files, "lastHeartbeatAt"), "{later}");
    assert_eq!(repo.ledger_events("lease.issued").len(), 1);
}

// S4-12, S4-23, S4-24, S4-46, S4-47, S4-56
#[test]
fn contention_is_recorded_and_the_retry_is_due_after_the_interval() {
    // As it comes, with the real three minutes.
    let repo = TestRepository::new();
    let (mut one, mut two) = (FakeAgent::start(&repo, "one"), FakeAgent::start(&repo, "two"));
    assert!(one.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    assert!(repo.ledger_events("file.contended").is_empty());
    two.start_hook(&repo.edit_payload("s2", "a"));
    two.wait_for_contention();
    let events = repo.ledger_events("file.contended");
    let [event] = &events[..] else { panic!("one heartbeat: {events:?}") };
    let tick = |value: &Value| value.as_u64().unwrap();
    assert_eq!(tick(&event["file"]["retryTick"]) - tick(&event["tick"]), 180_000_000, "{event}");
    let time = |value: &Value| unix_milliseconds(value.as_str().unwrap());
    assert_eq!(time(&event["file"]["retryAt"]) - time(&event["at"]), 180_000, "{event}");
    let files = repo.json(&["files", "--json"]);
    assert_eq!(files[0]["leaseState"], "CONTENDED", "{files}");
    let remaining = files[0]["waiters"][0]["retryInMs"].as_u64().unwrap();
    assert!(remaining > 0 && remaining <= 180_000, "{files}");
    let table = repo.run(&["files"]).output;
    assert!(table.contains("claude s2 (retry in "), "{table}");
    // The countdown goes down, and nobody asks in between.
    wait_until("it counts down", || {
        repo.json(&["files", "--json"])[0]["waiters"][0]["retryInMs"].as_u64() < Some(remaining)
    });
    assert_eq!(repo.ledger_events("file.contended").len(), 1);
}

// S4-5, S4-14, S4-28, S4-34 to S4-39, S4-42, S4-49, S4-57
#[test]
fn agent_denied_at_the_retry_is_stopped_with_a_report_of_six_fields() {
    let repo = TestRepository::with_retry_and_idle(2, 30);
    let (mut one, mut two) = (FakeAgent::start(&repo, "one"), FakeAgent::start(&repo, "two"));
    assert!(one.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    let result = two.run_hook(&repo.edit_payload("s2", "a"));
    let answer: Value = serde_json::from_str(&result.output).unwrap();
    assert_eq!(answer["continue"], false, "{result:?}");
    assert_eq!(result.errors.matches("contention").count(), 1, "it asked twice in all: {result:?}");
    let reports = repo.json(&["report", "list", "--json"]);
    let listed = &reports["reports"][0];
    let id = listed["id"].as_str().unwrap();
    assert!(result.denial_reason().contains(id), "{result:?}");
    let report = repo.json(&["report", "show", id, "--json"]);
    assert_eq!(report["blockedFile"], "a");
    let owner = &report["owner"];
    assert_eq!(
        (&owner["agent"], &owner["session"], &owner["pid"], &owner["alive"]),
        (&json!("claude"), &json!("s1"), &json!(one.process_id()), &json!(true)),
        "{report}"
    );
    assert!(report["lockAgeMs"].as_u64().unwrap() >= 2_000, "{report}");
    let last_heartbeat = unix_milliseconds(report["lastHeartbeatAt"].as_str().unwrap());
    let blocked = unix_milliseconds(report["blockedAt"].as_str().unwrap());
    assert!(last_heartbeat <= blocked - 2_000, "nothing was heard since it asked: {report}");
    assert_eq!(report["retryIntervalSeconds"], 2, "{report}");
    assert_eq!(report["state"], "waiting_for_instruction", "{report}");
    assert_eq!(repo.ledger_events("file.blocked").len(), 1);
    // Stopped means stopped: asking again and again waits for nothing and reports nothing new.
    for _ in 0..3 {
        assert!(!two.run_hook(&repo.edit_payload("s2", "a")).is_allowed());
    }
    assert_eq!(
        (repo.ledger_events("file.contended").len(), repo.ledger_events("file.blocked").len()),
        (1, 1)
    );
    assert_eq!(repo.owner_session("a").as_deref(), Some("s1"));
}

// S4-25, S4-28, S4-42
#[test]
fn call_for_several_files_is_blocked_by_one_held_file_and_gets_none() {
    let repo = TestRepository::with_retry_and_idle(3, 30);
    let (mut one, mut three) = (FakeAgent::start(&repo, "one"), FakeAgent::start(&repo, "three"));
    assert!(one.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    assert!(three.run_hook(&repo.edit_payload("s3", "b")).is_allowed());
    let mut two = FakeAgent::start_kind(&repo, "two", "codex");
    let mut patch = repo.patch_payload("s2", "a");
    let text =
        "*** Begin Patch\n*** Delete File: a\n*** Delete File: b\n*** Add File: c\n+new\n*** End Patch\n";
    patch["tool_input"]["command"] = json!(text);
    patch["tool_use_id"] = json!("call_1");
    two.start_hook(&patch);
    two.wait_for_contention();
    one.run_hook(&repo.event_payload("s1", "SessionEnd"));
    let result = two.finish_line();
    let reason = result.denial_reason();
    assert!(reason.contains("`b` was not changed") && reason.contains("session s3"), "{reason}");
    assert_eq!(repo.held_files(), ["b"], "all or nothing");
    let reports = repo.json(&["report", "list", "--json"]);
    assert_eq!(reports["reports"].as_array().unwrap().len(), 1, "{reports}");
    assert_eq!(reports["reports"][0]["blockedFile"], "b", "{reports}");
    // Once it is free, the same call passes.
    three.run_hook(&repo.event_payload("s3", "SessionEnd"));
    let result = two.run_hook(&patch);
    assert!(result.is_allowed(), "{result:?}");
    assert_eq!(repo.held_files(), ["a", "b", "c"]);
}

// S4-63
#[test]
fn mutually_blocked_agents_are_both_stopped_with_the_cycle_in_their_reports() {
    let repo = TestRepository::with_retry_and_idle(3, 30);
    let (mut one, mut two) = (FakeAgent::start(&repo, "one"), FakeAgent::start(&repo, "two"));
    assert!(one.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    assert!(two.run_hook(&repo.edit_payload("s2", "b")).is_allowed());
    one.start_hook(&repo.edit_payload("s1", "b"));
    one.wait_for_contention();
    two.start_hook(&repo.edit_payload("s2", "a"));
    let (first, second) = (one.finish_line(), two.finish_line());
    let reports = repo.json(&["report", "list", "--json"]);
    let reports = reports["reports"].as_array().unwrap();
    assert_eq!(reports.len(), 2, "{reports:?}");
    for report in reports {
        let circle = report["circle"].to_string();
        assert!(circle.contains("claude/s1@") && circle.contains("claude/s2@"), "{report}");
    }
    for result in [first, second] {
        let reason = result.denial_reason();
        assert!(
            reason.contains("wait for each other") && reason.contains("waiting_for_instruction"),
            "{reason}"
        );
    }
}

// S4-2
#[test]
fn suspended_owner_is_marked_and_keeps_its_files() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let (mut one, mut two) = (FakeAgent::start(&repo, "one"), FakeAgent::start(&repo, "two"));
    assert!(one.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    signal(one.process_id(), "STOP");
    wait_until("it is seen", || repo.json(&["files", "--json"])[0]["owner"]["suspended"] == json!(true));
    let result = two.run_hook(&repo.edit_payload("s2", "a"));
    assert!(result.denial_reason().contains("suspended"), "{result:?}");
    let holder = repo.run(&["who", "a"]);
    assert!(holder.output.contains(", suspended) has a"), "{holder:?}");
    signal(one.process_id(), "CONT");
    assert!(one.run_hook(&repo.edit_payload("s1", "a")).is_allowed(), "it goes on with what it had");
}
