//! Whose a change is: the agent's nearest to it, in its session; or the guard's own.

use std::fs;

use serde_json::json;
use tenure_testkit::{FakeAgent, TestRepository, signal, wait_until};

// S4-15, S4-16
#[test]
fn hook_and_shell_of_one_agent_are_one_owner() {
    let repo = TestRepository::new();
    let mut agent = FakeAgent::start(&repo, "one");
    assert!(agent.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    let result = agent.run_line("\"$TENURE\" guard -- sh -c 'echo more >> a && echo more >> b'");
    assert_eq!((result.code, &*result.errors), (Some(0), ""), "{result:?}");
    assert_eq!(repo.owner_session("b").as_deref(), Some("s1"), "what its shell got, its session has");
    assert!(agent.run_hook(&repo.edit_payload("s1", "b")).is_allowed());
}

#[test]
fn named_session_is_used_only_if_it_belongs_to_the_agent() {
    let repo = TestRepository::new();
    let (mut one, mut two) = (FakeAgent::start(&repo, "one"), FakeAgent::start(&repo, "two"));
    assert!(one.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    one.run_hook(&repo.event_payload("s2", "SessionStart"));
    let result = one.run_line("TENURE_SESSION=s1 \"$TENURE\" guard -- sh -c 'echo more >> a'");
    assert_eq!(result.code, Some(0), "{result:?}");
    let result = one.run_line("\"$TENURE\" guard --session s2 -- sh -c 'echo more >> a'");
    assert_eq!(result.code, Some(2), "another session of the same agent: {result:?}");
    two.run_hook(&repo.event_payload("s3", "SessionStart"));
    let result = two.run_line("\"$TENURE\" guard --session s1 -- sh -c 'echo more >> a'");
    assert_eq!(result.code, Some(2), "the name of somebody else's session does not help: {result:?}");
    assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), "one\nmore\n");
}

#[test]
fn unnamed_guard_uses_the_last_active_session() {
    let repo = TestRepository::new();
    let mut agent = FakeAgent::start(&repo, "one");
    agent.run_hook(&repo.event_payload("s1", "SessionStart"));
    agent.run_hook(&repo.event_payload("s2", "SessionStart"));
    assert_eq!(agent.run_line("\"$TENURE\" guard -- sh -c 'echo more >> a'").code, Some(0));
    assert_eq!(repo.owner_session("a").as_deref(), Some("s2"));
    agent.run_hook(&repo.event_payload("s1", "UserPromptSubmit"));
    assert_eq!(agent.run_line("\"$TENURE\" guard -- sh -c 'echo more >> b'").code, Some(0));
    assert_eq!(repo.owner_session("b").as_deref(), Some("s1"));
}

#[test]
fn agent_inside_a_guard_is_the_owner_of_its_changes() {
    let repo = TestRepository::new();
    let mut person = FakeAgent::start_kind(&repo, "person", "terminal");
    fs::create_dir(repo.path("inside")).unwrap();
    fs::copy("/bin/bash", repo.path("inside/claude")).unwrap();
    fs::write(repo.path("payload"), repo.event_payload("s1", "SessionStart").to_string()).unwrap();
    fs::write(repo.path("edit"), repo.edit_payload("s1", "b").to_string()).unwrap();
    let script = "echo early >> a; \"$TENURE\" hook claude < ../payload; \"$TENURE\" hook claude < ../edit; \
                  sh -c \"echo more >> a\"; echo more >> b; touch ../written; while [ ! -e ../go ]; do sleep 0.02; done";
    person.start_line(&format!("\"$TENURE\" guard -- ../inside/claude -c '{script}'"));
    wait_until("all is written", || repo.path("written").exists());
    assert_eq!(repo.owner_session("b").as_deref(), Some("s1"), "by its hook");
    assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), "one\nearly\nmore\n");
    assert!(repo.owner_session("a").is_some(), "what it got before its session was known is still its own");
    fs::write(repo.path("go"), "").unwrap();
    let result = person.finish_line();
    assert_eq!((result.code, &*result.errors), (Some(0), ""), "{result:?}");
}

// S4-20, S4-32
#[test]
fn guarded_processes_of_a_killed_agent_end_before_its_files_are_free() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let mut one = FakeAgent::start(&repo, "one");
    one.run_hook(&repo.event_payload("s1", "SessionStart"));
    one.start_line(
        "\"$TENURE\" guard -- sh -c 'exec 3>> a; touch ../open; while :; do echo line >&3; sleep 0.01; done'",
    );
    wait_until("the file is open", || repo.path("open").exists());
    signal(one.process_id(), "KILL");
    let mut two = FakeAgent::start(&repo, "two");
    let result = two.run_hook(&repo.edit_payload("s2", "a"));
    assert!(result.is_allowed(), "{result:?}");
    let before = fs::read_to_string(repo.file("a")).unwrap();
    tenure_testkit::assert_stays("nobody writes any more", std::time::Duration::from_millis(300), || {
        fs::read_to_string(repo.file("a")).unwrap() == before
    });
}

// S4-20, S4-32
#[test]
fn orphan_writers_of_an_agent_inside_a_guard_are_ended() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let mut person = FakeAgent::start_kind(&repo, "person", "terminal");
    for agent in ["claude", "codex"] {
        fs::create_dir_all(repo.path("inside")).unwrap();
        std::process::Command::new("cp")
            .arg("/bin/bash")
            .arg(repo.path("inside").join(agent))
            .status()
            .unwrap();
    }
    // Whoever opened the file is gone when the agent ends; what it left has it open. Another agent works in the same guard.
    let agent_script = "sh -c \"exec 3>>a; (touch ../open; while :; do echo late >&3; sleep 0.05; done) & \"; \
                while [ ! -e ../end ]; do sleep 0.02; done";
    let other = "echo own >> b; touch ../other; while [ ! -e ../all ]; do sleep 0.02; done";
    fs::write(repo.path("left"), agent_script).unwrap();
    fs::write(repo.path("other.sh"), other).unwrap();
    let script = "../inside/claude ../left & ../inside/codex ../other.sh";
    person.start_line(&format!("\"$TENURE\" guard -- bash -c '{script}'"));
    wait_until("both have written", || repo.path("open").exists() && repo.path("other").exists());
    assert!(repo.owner_session("a").is_some() && repo.owner_session("b").is_some());
    fs::write(repo.path("end"), "").unwrap();
    wait_until("what the one had is free", || repo.owner_session("a").is_none());
    let before = fs::read_to_string(repo.file("a")).unwrap();
    tenure_testkit::assert_stays("nobody writes any more", std::time::Duration::from_millis(500), || {
        fs::read_to_string(repo.file("a")).unwrap() == before
    });
    assert!(repo.owner_session("b").is_some(), "the other one lives");
    fs::write(repo.path("all"), "").unwrap();
    assert_eq!(person.finish_line().code, Some(0));
}

#[test]
fn end_of_an_agent_does_not_end_another_writer_of_its_file() {
    let repo = TestRepository::new();
    assert_eq!(repo.run(&["install", "git"]).code, Some(0));
    let mut person = FakeAgent::start_kind(&repo, "person", "terminal");
    fs::create_dir(repo.path("inside")).unwrap();
    std::process::Command::new("cp").arg("/bin/bash").arg(repo.path("inside/claude")).status().unwrap();
    let agent_script =
        "echo own >> a; git commit -qam own; touch ../committed; while [ ! -e ../end ]; do sleep 0.02; done";
    fs::write(repo.path("inner"), agent_script).unwrap();
    let script = "../inside/claude ../inner & agent=$!; while [ ! -e ../committed ]; do sleep 0.02; done; \
                  exec 7>>a; echo mine >&7; touch ../open; wait $agent; sleep 1.5; echo still >&7";
    person.start_line(&format!("\"$TENURE\" guard -- bash -c '{script}'"));
    wait_until("the shell goes on with the file", || repo.path("open").exists());
    fs::write(repo.path("end"), "").unwrap();
    let result = person.finish_line();
    assert_eq!((result.code, &*result.errors), (Some(0), ""), "{result:?}");
    assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), "one\nown\nmine\nstill\n");
}

#[test]
fn changes_of_a_shell_around_an_agent_are_not_the_agents() {
    let repo = TestRepository::new();
    let mut person = FakeAgent::start_kind(&repo, "person", "terminal");
    fs::create_dir(repo.path("inside")).unwrap();
    std::process::Command::new("cp").arg("/bin/bash").arg(repo.path("inside/claude")).status().unwrap();
    let agent_script = "echo own >> a; (setsid sh -c \"while [ ! -e ../late ]; do sleep 0.02; done; echo late >> a; touch ../done\" &); \
                 touch ../written; while [ ! -e ../go ]; do sleep 0.02; done";
    fs::write(repo.path("inner"), agent_script).unwrap();
    let script = "../inside/claude ../inner & while [ ! -e ../written ]; do sleep 0.02; done; echo outer >> b; touch ../outer; wait";
    person.start_line(&format!("\"$TENURE\" guard -- bash -c '{script}'"));
    wait_until("both have written", || repo.path("outer").exists());
    let holder = |file: &str| repo.json(&["who", file, "--json"])["file"]["owner"]["holder"].to_string();
    assert!(holder("a").contains("claude"), "{}", holder("a"));
    assert!(!holder("b").contains("claude"), "{}", holder("b"));
    fs::write(repo.path("late"), "").unwrap();
    wait_until("what it left in the background has written what is its own", || repo.path("done").exists());
    assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), "one\nown\nlate\n");
    fs::write(repo.path("go"), "").unwrap();
    assert_eq!(person.finish_line().code, Some(0));
}

// S4-59
#[test]
fn background_changes_do_not_begin_a_new_turn() {
    let repo = TestRepository::with_retry_and_idle(1, 1);
    let mut agent = FakeAgent::start(&repo, "one");
    agent.run_hook(&repo.event_payload("s1", "SessionStart"));
    agent.run_hook(&repo.event_payload("s1", "Stop"));
    assert_eq!(agent.run_line("\"$TENURE\" guard -- sh -c 'echo more >> a'").code, Some(0));
    wait_until("it is let go of as after any turn", || repo.owner_session("a").is_none());
}

#[test]
fn process_outside_of_the_guard_is_rejected() {
    let repo = TestRepository::new();
    let mut agent = FakeAgent::start(&repo, "one");
    assert!(agent.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    let ask = json!({
        "speaker": {"agent": "guard", "session": "x"}, "cwd": "/", "paths": [repo.file("a")], "process": agent.process_id(),
    });
    let line = format!(
        "curl -s --unix-socket ../tenure/tenure.sock -H 'content-type: application/json' -d '{ask}' http://localhost/v1/files/acquire"
    );
    let result = repo.shell(&line);
    assert!(result.output.contains("is not below the guard that asks"), "{result:?}");
}

// S4-15
#[test]
fn guard_does_not_use_a_lease_that_was_released_by_force() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let mut person = FakeAgent::start_kind(&repo, "person", "terminal");
    let line =
        "echo 1 >> a; echo 2 >> a; touch ../first; while [ ! -e ../go ]; do sleep 0.02; done; echo 3 >> a";
    person.start_line(&format!("\"$TENURE\" guard -- sh -c '{line}'"));
    wait_until("it is written", || repo.path("first").exists());
    let result = repo.run(&["force-release", "a", "--reason", "it hangs"]);
    assert_eq!(result.code, Some(0), "{result:?}");
    let mut other = FakeAgent::start(&repo, "other");
    other.edit_file(&repo, "s1", "a", "theirs\n");
    fs::write(repo.path("go"), "").unwrap();
    let result = person.finish_line();
    assert_ne!(result.code, Some(0), "{result:?}");
    assert!(result.errors.contains("`a` was not changed: claude (session s1"), "{result:?}");
    assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), "theirs\n");
}

// S4-15
#[test]
fn grant_survives_a_server_restart_unless_it_is_released() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let mut person = FakeAgent::start_kind(&repo, "person", "terminal");
    let line = "echo 1 >> a; touch ../first; while [ ! -e ../go ]; do sleep 0.02; done; echo 2 >> a";
    person.start_line(&format!("\"$TENURE\" guard -- sh -c '{line}'"));
    wait_until("it is written", || repo.path("first").exists());
    signal(repo.daemon_pid().unwrap(), "KILL");
    wait_until("the server is gone", || repo.daemon_pid().is_none());
    let result = repo.run(&["files"]);
    assert_ne!(result.code, Some(0), "nobody serves: {result:?}");
    let mut other = FakeAgent::start(&repo, "other");
    other.run_hook(&repo.event_payload("s1", "SessionStart"));
    assert_eq!(repo.run(&["force-release", "a", "--reason", "it hangs"]).code, Some(0));
    other.edit_file(&repo, "s1", "a", "theirs\n");
    fs::write(repo.path("go"), "").unwrap();
    assert_ne!(person.finish_line().code, Some(0));
    assert_eq!(fs::read_to_string(repo.file("a")).unwrap(), "theirs\n");
}

// S4-15
#[test]
fn background_process_belongs_to_the_agent_and_keeps_its_open_file() {
    let repo = TestRepository::with_retry_and_idle(1, 1);
    let mut agent = FakeAgent::start(&repo, "one");
    agent.run_hook(&repo.event_payload("s1", "SessionStart"));
    let line = "(while [ ! -e ../go ]; do sleep 0.02; done; exec 3>> b; touch ../open; while [ ! -e ../end ]; do sleep 0.02; done) > \
                /dev/null 2>&1 & exit 0";
    let result = agent.run_line(&format!("\"$TENURE\" guard -- sh -c '{line}'"));
    assert_eq!(result.code, Some(0), "{result:?}");
    fs::write(repo.path("go"), "").unwrap();
    wait_until("the file is open", || repo.path("open").exists());
    assert_eq!(
        repo.owner_session("b").as_deref(),
        Some("s1"),
        "the agent's, though nobody of it is above any more"
    );
    assert!(agent.run_hook(&repo.edit_payload("s1", "b")).is_allowed());
    agent.run_hook(&repo.event_payload("s1", "Stop"));
    tenure_testkit::assert_stays("it is open", std::time::Duration::from_millis(2_500), || {
        repo.owner_session("b").as_deref() == Some("s1")
    });
    agent.run_hook(&repo.event_payload("s1", "SessionEnd"));
    tenure_testkit::assert_stays("it is still open", std::time::Duration::from_millis(500), || {
        repo.owner_session("b").as_deref() == Some("s1")
    });
    fs::write(repo.path("end"), "").unwrap();
    wait_until("it is let go of", || repo.owner_session("b").is_none());
}

// S4-20, S4-32
#[test]
fn file_of_a_dead_agent_is_not_granted_while_its_guard_has_it_open() {
    let repo = TestRepository::with_retry_and_idle(1, 30);
    let mut one = FakeAgent::start(&repo, "one");
    one.run_hook(&repo.event_payload("s1", "SessionStart"));
    one.start_line("\"$TENURE\" guard -- sh -c 'exec 3>> a; echo $PPID > ../keeper; touch ../open; while :; do sleep 0.01; done'");
    wait_until("the file is open", || repo.path("open").exists());
    let supervisor: u32 = fs::read_to_string(repo.path("keeper")).unwrap().trim().parse().unwrap();
    signal(supervisor, "STOP");
    signal(one.process_id(), "KILL");
    let mut two = FakeAgent::start(&repo, "two");
    two.start_hook(&repo.edit_payload("s2", "a"));
    tenure_testkit::assert_stays("its guard has it open", std::time::Duration::from_secs(1), || {
        repo.owner_session("a").as_deref() != Some("s2")
    });
    signal(supervisor, "CONT");
    let result = two.finish_line();
    assert!(result.is_allowed(), "{result:?}");
}

#[test]
fn unknown_session_name_does_not_change_the_owner() {
    let repo = TestRepository::new();
    let mut agent = FakeAgent::start(&repo, "one");
    assert!(agent.run_hook(&repo.edit_payload("s1", "a")).is_allowed());
    let result = agent.run_line("TENURE_SESSION=somebody-elses \"$TENURE\" guard -- sh -c 'echo more >> a'");
    assert_eq!((result.code, &*result.errors), (Some(0), ""), "{result:?}");
}

#[test]
fn guard_requests_from_other_processes_are_rejected() {
    let repo = TestRepository::new();
    let mut agent = FakeAgent::start(&repo, "one");
    agent.run_hook(&repo.event_payload("s1", "SessionStart"));
    let post = |path: &str, body: serde_json::Value| {
        let line = format!(
            "curl -s --unix-socket ../tenure/tenure.sock -H 'content-type: application/json' -d '{body}' http://localhost/v1/files/{path}"
        );
        repo.shell(&line).output
    };
    let caller = json!({"agent": "guard", "session": "x"});
    let reply = post("acquire", json!({"speaker": caller, "cwd": "/", "paths": [repo.file("a")]}));
    assert!(reply.contains("is what a guard says"), "{reply}");
    for event in ["active", "ended", "turn_ended"] {
        let reply = post("events", json!({"speaker": caller, "event": event}));
        assert!(reply.contains("not a guard's to tell"), "{event}: {reply}");
    }
}
