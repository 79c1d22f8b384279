//! What a person does about files, and that it can be seen afterwards.

use serde_json::json;
use tenure_testkit::{FakeAgent, TestRepository};

/// `one` has `a`, and `two` has stopped because of it. The name of its report.
fn blocked() -> (TestRepository, FakeAgent, FakeAgent, String) {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let (mut one, mut two) = (FakeAgent::start(&repo, "one"), FakeAgent::start(&repo, "two"));
    assert!(one.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    assert!(!two.run_hook(&repo.edit_payload("s2", "a")).is_allowed());
    let reports = repo.json(&["report", "list", "--json"]);
    let report = reports["reports"][0]["id"].as_str().unwrap().to_owned();
    (repo, one, two, report)
}

// S4-54
#[test]
fn stopped_agent_is_resumed_by_a_human_once_the_file_is_free() {
    let (repo, mut one, mut two, report) = blocked();
    let early = repo.run(&["report", "resume", &report]);
    assert_eq!(early.code, Some(75), "somebody still has it: {early:?}");
    one.run_hook(&repo.event_payload("s1", "SessionEnd"));
    let resumed = repo.run(&["report", "resume", &report]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(repo.owner_session("a").as_deref(), Some("s2"));
    assert!(two.run_hook(&repo.edit_payload("s2", "a")).is_allowed());
    assert_eq!(repo.json(&["report", "show", &report, "--json"])["state"], "resumed");
    let again = repo.run(&["report", "resume", &report]);
    assert_eq!(again.code, Some(1), "{again:?}");
}

#[test]
fn forced_release_and_transfer_are_in_the_ledger() {
    let (repo, _one, mut two, report) = blocked();
    let taken = repo.run(&["force-release", "a", "--reason", "he is on holiday"]);
    assert_eq!(taken.code, Some(0), "{taken:?}");
    let revoked = repo.ledger_events("lease.revoked");
    let [event] = &revoked[..] else { panic!("{revoked:?}") };
    assert_eq!(event["detail"], "he is on holiday", "{event}");
    assert!(event["by"].as_str().is_some_and(|by| !by.is_empty()), "{event}");
    let log = repo.run(&["log"]).output;
    assert!(log.contains("he is on holiday"), "{log}");
    // Free, and whoever waits for it may simply ask.
    assert!(two.run_hook(&repo.edit_payload("s2", "a")).is_allowed());
    assert_eq!(repo.json(&["report", "show", &report, "--json"])["state"], "served");
    let transferred = repo.run(&["give", "a", "--to", "s1"]);
    assert_eq!(transferred.code, Some(0), "{transferred:?}");
    assert_eq!(repo.owner_session("a").as_deref(), Some("s1"));
    assert_eq!(repo.ledger_events("lease.revoked").len(), 2, "what was taken from the other one is told too");
    let result = two.run_hook(&repo.edit_payload("s2", "a"));
    assert!(!result.is_allowed(), "it is not theirs any more: {result:?}");
}

#[test]
fn human_only_commands_are_rejected_below_an_agent() {
    let (repo, _one, mut two, report) = blocked();
    assert_eq!(repo.run(&["install", "git"]).code, Some(0));
    for command in [
        "force-release a".to_owned(),
        "give a --to s2".to_owned(),
        format!("report resume {report}"),
        "stop".to_owned(),
        "uninstall git".to_owned(),
    ] {
        // However deep below the agent, and cut off from it.
        for line in [
            format!("\"$TENURE\" {command}"),
            format!("sh -c 'sh -c \"\\\"$TENURE\\\" {command}\"; exit $?'"),
            format!("setsid -w \"$TENURE\" {command}"),
            format!("env -i HOME=\"$HOME\" XDG_RUNTIME_DIR=\"$XDG_RUNTIME_DIR\" \"$TENURE\" {command}"),
        ] {
            let result = two.run_line(&line);
            assert!(result.code == Some(77) && result.errors.contains("only a person"), "{line}: {result:?}");
        }
    }
    assert_eq!(repo.owner_session("a").as_deref(), Some("s1"));
    assert!(repo.file(".git/hooks/post-commit").exists());
    assert_eq!(repo.json(&["report", "show", &report, "--json"])["state"], json!("waiting_for_instruction"));
}
