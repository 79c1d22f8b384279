//! Two agents want one file: the wait inside the hook, the one retry, the stop.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_testkit::{FakeAgent, TestRepository, now, signal, wait_until};

/// After how many seconds the retry is due, for those who wait for it.
const SOON: u32 = 4;
/// The same for those who do not.
const LATE: u32 = 60;

/// A file that `one` has, and `two` who wants it.
fn contended(retry_after: u32) -> (TestRepository, FakeAgent, FakeAgent) {
    let repo = TestRepository::with_retry_after(retry_after);
    let (mut one, two) = (FakeAgent::start(&repo, "one"), FakeAgent::start(&repo, "two"));
    let result = one.run_hook(&repo.edit_payload("s1", "a"));
    assert!(result.is_allowed(), "{result:?}");
    (repo, one, two)
}

// S4-3, S4-19, S4-23, S4-27, S4-55 to S4-57
#[test]
fn denied_hook_retries_once_and_is_stopped_with_a_report() {
    let (repo, one, mut two) = contended(SOON);
    let started_at = now();
    two.start_hook(&repo.edit_payload("s2", "a"));
    two.wait_for_contention();
    let shown = repo.json(&["files", "--json"]);
    let waiter = &shown[0]["waiters"][0];
    assert_eq!((&waiter["session"], &waiter["state"]), (&json!("s2"), &json!("RETRY_PENDING")), "{shown}");
    let result = two.finish_line();
    assert!(now() - started_at >= Duration::from_secs(SOON.into()), "it waited");
    let reason = result.denial_reason();
    let answer: Value = serde_json::from_str(&result.output).unwrap();
    assert_eq!(answer["continue"], false, "the turn ends: {answer}");
    for part in [
        "`a`",
        "session s1",
        &format!("pid {}", one.process_id()),
        "waiting_for_instruction",
        "tenure report show",
    ] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    let heartbeats = result.errors.lines().filter(|line| line.contains("contention"));
    assert_eq!(heartbeats.count(), 1, "{result:?}");
    let reports = repo.json(&["report", "list", "--json"]);
    let report = &reports["reports"][0];
    assert_eq!(report["blockedFile"], "a", "{reports}");
    assert_eq!(report["state"], "waiting_for_instruction", "{reports}");
    assert!(reason.contains(report["id"].as_str().unwrap()), "{reason}");
    // Asked again it is the same: no second wait, no second report.
    let again = two.run_hook(&repo.edit_payload("s2", "a"));
    assert!(!again.is_allowed() && !again.errors.contains("contention"), "{again:?}");
    // Another file is free.
    assert!(two.run_hook(&repo.edit_payload("s2", "b")).is_allowed());
}

// S4-26, S4-48
#[test]
fn file_that_is_free_at_the_retry_is_granted() {
    let (repo, mut one, mut two) = contended(SOON);
    two.start_hook(&repo.edit_payload("s2", "a"));
    two.wait_for_contention();
    one.run_hook(&repo.event_payload("s1", "SessionEnd"));
    let result = two.finish_line();
    assert!(result.is_allowed(), "{result:?}");
    assert_eq!(repo.json(&["who", "a", "--json"])["file"]["owner"]["session"], "s2");
}

// S4-22, S4-58
#[test]
fn file_of_a_dead_owner_is_granted_without_contention() {
    let (repo, one, mut two) = contended(LATE);
    drop(one);
    let result = two.run_hook(&repo.edit_payload("s2", "a"));
    assert!(result.is_allowed() && !result.errors.contains("contention"), "{result:?}");
}

#[test]
fn signalled_hook_denies_while_it_is_waiting() {
    let (repo, _one, mut two) = contended(LATE);
    for (session, name) in [("s2", "TERM"), ("s3", "INT")] {
        // `exec`: the shell becomes the hook, so that its number is known.
        std::fs::write(repo.path("payload"), repo.edit_payload(session, "a").to_string()).unwrap();
        two.start_line("sh -c 'echo $$ > ../hook; exec \"$TENURE\" hook claude < ../payload'");
        two.wait_for_contention();
        let hook = std::fs::read_to_string(repo.path("hook")).unwrap().trim().parse().unwrap();
        signal(hook, name);
        let result = two.finish_line();
        assert!(result.denial_reason().contains("told to end"), "{result:?}");
    }
}

// S4-15
#[test]
fn signalled_hook_denies_before_the_server_responds() {
    let (repo, _one, mut two) = contended(LATE);
    let daemon = repo.daemon_pid().unwrap();
    signal(daemon, "STOP");
    for name in ["TERM", "INT", "HUP", "QUIT"] {
        std::fs::write(repo.path("payload"), repo.edit_payload("s2", "b").to_string()).unwrap();
        two.start_line("sh -c 'echo $$ > ../hook; exec \"$TENURE\" hook claude < ../payload'");
        let hook = || std::fs::read_to_string(repo.path("hook")).ok()?.trim().parse::<u32>().ok();
        // Signals 1, 2, 3 and 15 are bits 0, 1, 2 and 14.
        wait_until("the hook asks", || hook().is_some_and(|hook| caught(hook) & 0x4007 == 0x4007));
        signal(hook().unwrap(), name);
        let result = two.finish_line();
        assert!(result.denial_reason().contains("told to end"), "{name}: {result:?}");
        std::fs::remove_file(repo.path("hook")).unwrap();
    }
    signal(daemon, "CONT");
}

/// Which signals a process catches.
fn caught(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok()).unwrap_or(0)
}

#[test]
fn hook_ends_with_its_agent_and_acquires_nothing() {
    let (repo, mut one, mut two) = contended(LATE);
    std::fs::write(repo.path("payload"), repo.edit_payload("s2", "a").to_string()).unwrap();
    two.start_line("sh -c 'echo $$ > ../hook; exec \"$TENURE\" hook claude < ../payload'");
    two.wait_for_contention();
    let hook: u32 = std::fs::read_to_string(repo.path("hook")).unwrap().trim().parse().unwrap();
    drop(two);
    wait_until("the hook ends", || {
        let stat = std::fs::read_to_string(format!("/proc/{hook}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    });
    one.run_hook(&repo.event_payload("s1", "SessionEnd"));
    wait_until("nobody has it", || repo.json(&["files", "--json"]) == json!([]));
}

#[test]
fn killed_server_is_restarted_for_the_retry() {
    let (repo, _one, mut two) = contended(SOON);
    two.start_hook(&repo.edit_payload("s2", "a"));
    two.wait_for_contention();
    let first = repo.daemon_pid().unwrap();
    signal(first, "KILL");
    let result = two.finish_line();
    assert!(result.denial_reason().contains("waiting_for_instruction"), "{result:?}");
    assert_ne!(repo.daemon_pid(), Some(first));
}

// S4-25
#[test]
fn codex_hook_does_not_wait_and_asks_for_a_later_retry() {
    let (repo, _one, mut two) = contended(SOON);
    let payload = json!({
        "session_id": "s2", "turn_id": "t", "cwd": repo.file(""), "hook_event_name": "PreToolUse",
        "tool_name": "apply_patch", "tool_use_id": "exec-1",
        "tool_input": {"command": "*** Begin Patch\n*** Update File: a\n@@\n-one\n+two\n*** End Patch\n"},
    });
    std::fs::write(repo.path("payload"), payload.to_string()).unwrap();
    let line = "\"$TENURE\" hook codex < ../payload";
    let result = two.run_line(line);
    assert!(result.denial_reason().contains("once more in"), "{result:?}");
    assert!(!result.output.contains("continue") && !result.errors.contains("contention"), "{result:?}");
    let again = two.run_line(line);
    assert!(again.denial_reason().contains("once more in"), "{again:?}");
    wait_until("the one retry is due", || {
        repo.json(&["files", "--json"])[0]["waiters"][0]["retryInMs"] == json!(0)
    });
    let retry = two.run_line(line);
    assert!(retry.denial_reason().contains("waiting_for_instruction"), "{retry:?}");
    assert!(!retry.output.contains("continue"), "Codex would make the edit: {retry:?}");
}

#[test]
fn warn_mode_allows_the_edit_and_informs_the_model() {
    let repo = TestRepository::new();
    repo.configure("[files]\nmode = 'warn'\n");
    let (mut one, mut two) = (FakeAgent::start(&repo, "one"), FakeAgent::start(&repo, "two"));
    assert!(one.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    let result = two.run_hook(&repo.edit_payload("s2", "a"));
    assert!(result.is_allowed() && result.output.contains("only warns"), "{result:?}");
}
