//! When a turn is over: files are let go of after a while in which nothing is heard.

use std::time::Duration;

use tenure_testkit::{FakeAgent, TestRepository, assert_stays, now, wait_until};

/// The half minute, shortened.
const IDLE: u32 = 2;

fn edited() -> (TestRepository, FakeAgent) {
    let repo = TestRepository::with_retry_and_idle(1, IDLE);
    let mut agent = FakeAgent::start(&repo, "one");
    agent.edit_file(&repo, "s1", "a", "two\n");
    (repo, agent)
}

// S4-4, S4-33, S4-53, S4-59
#[test]
fn files_are_released_after_an_idle_period_at_the_end_of_a_turn() {
    let (repo, mut agent) = edited();
    let started_at = now();
    agent.run_hook(&repo.event_payload("s1", "Stop"));
    let shown = repo.json(&["files", "--json"]);
    let remaining = shown[0]["releasedInMs"].as_u64().unwrap_or_else(|| panic!("{shown}"));
    assert!(remaining <= u64::from(IDLE) * 1_000, "{shown}");
    wait_until("it is free", || repo.held_files().is_empty());
    assert!(now() - started_at >= Duration::from_secs(IDLE.into()), "not earlier");
    // The next one is told what was left there.
    let mut two = FakeAgent::start(&repo, "two");
    let result = two.run_hook(&repo.edit_payload("s2", "a"));
    assert!(result.is_allowed() && result.output.contains("not committed"), "{result:?}");
}

// S4-33, S4-59
#[test]
fn files_are_kept_during_a_turn() {
    let (repo, _agent) = edited();
    assert_stays("it has its file", Duration::from_secs(u64::from(IDLE) + 1), || repo.held_files() == ["a"]);
}

// S4-33, S4-59
#[test]
fn any_event_after_the_end_of_a_turn_keeps_the_files() {
    for event in ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Notification"] {
        let (repo, mut agent) = edited();
        agent.run_hook(&repo.event_payload("s1", "Stop"));
        let mut sign = repo.event_payload("s1", event);
        sign["tool_name"] = "Bash".into();
        sign["tool_input"] = serde_json::json!({"command": "true"});
        sign["prompt"] = "go on".into();
        agent.run_hook(&sign);
        assert_stays(event, Duration::from_secs(u64::from(IDLE) + 1), || repo.held_files() == ["a"]);
    }
}

// S4-33
#[test]
fn file_that_a_child_still_writes_is_kept_until_it_is_closed() {
    let (repo, mut agent) = edited();
    let result = agent.run_line("{ mkfifo ../gate; (exec 3>> a; read -r _ < ../gate) & }");
    assert_eq!(result.code, Some(0), "{result:?}");
    agent.run_hook(&repo.event_payload("s1", "Stop"));
    assert_stays("it has its file", Duration::from_secs(u64::from(IDLE) + 2), || repo.held_files() == ["a"]);
    std::fs::write(repo.path("gate"), "go\n").unwrap();
    wait_until("it is free", || repo.held_files().is_empty());
}

#[test]
fn turn_with_a_background_task_keeps_its_files() {
    let (repo, mut agent) = edited();
    let mut stop = repo.event_payload("s1", "Stop");
    stop["background_tasks"] = serde_json::json!([{"id": "x", "type": "subagent", "status": "running"}]);
    agent.run_hook(&stop);
    assert_stays("it has its file", Duration::from_secs(u64::from(IDLE) + 1), || repo.held_files() == ["a"]);
}

// S4-33, S4-59
#[test]
fn idle_release_survives_a_killed_server() {
    let (repo, mut agent) = edited();
    agent.run_hook(&repo.event_payload("s1", "Stop"));
    tenure_testkit::signal(repo.daemon_pid().unwrap(), "KILL");
    wait_until("it is gone", || repo.daemon_pid().is_none());
    let mut two = FakeAgent::start(&repo, "two");
    two.run_hook(&repo.event_payload("s2", "SessionStart"));
    wait_until("it is free", || repo.held_files().is_empty());
}
