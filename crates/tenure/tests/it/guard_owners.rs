//! Whose a change is: the agent's nearest to it, in its session; or the guard's own.

use std::fs;

use serde_json::json;

use crate::client::wait_until;
use crate::commands::signal;
use crate::hook_stage::{FakeAgent, Stage};

// S4-15, S4-16
#[test]
fn hook_and_shell_of_one_agent_are_one_owner() {
    let stage = Stage::new();
    let mut agent = FakeAgent::start(&stage, "one");
    assert!(agent.hook(&stage.edit("s1", "a")).allows());
    let said = agent.run("\"$TENURE\" guard -- sh -c 'echo more >> a && echo more >> b'");
    assert_eq!((said.code, &*said.errors), (Some(0), ""), "{said:?}");
    assert_eq!(stage.owner("b").as_deref(), Some("s1"), "what its shell got, its session has");
    assert!(agent.hook(&stage.edit("s1", "b")).allows());
}

#[test]
fn the_session_that_is_named_counts_and_only_one_of_the_agents_own() {
    let stage = Stage::new();
    let (mut one, mut two) = (FakeAgent::start(&stage, "one"), FakeAgent::start(&stage, "two"));
    assert!(one.hook(&stage.edit("s1", "a")).allows());
    one.hook(&stage.event("s2", "SessionStart"));
    let said = one.run("TENURE_SESSION=s1 \"$TENURE\" guard -- sh -c 'echo more >> a'");
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = one.run("\"$TENURE\" guard --session s2 -- sh -c 'echo more >> a'");
    assert_eq!(said.code, Some(2), "another session of the same agent: {said:?}");
    two.hook(&stage.event("s3", "SessionStart"));
    let said = two.run("\"$TENURE\" guard --session s1 -- sh -c 'echo more >> a'");
    assert_eq!(said.code, Some(2), "the name of somebody else's session does not help: {said:?}");
    assert_eq!(fs::read_to_string(stage.repository("a")).unwrap(), "one\nmore\n");
}

#[test]
fn without_a_name_the_session_that_was_heard_of_last_is_meant() {
    let stage = Stage::new();
    let mut agent = FakeAgent::start(&stage, "one");
    agent.hook(&stage.event("s1", "SessionStart"));
    agent.hook(&stage.event("s2", "SessionStart"));
    assert_eq!(agent.run("\"$TENURE\" guard -- sh -c 'echo more >> a'").code, Some(0));
    assert_eq!(stage.owner("a").as_deref(), Some("s2"));
    agent.hook(&stage.event("s1", "UserPromptSubmit"));
    assert_eq!(agent.run("\"$TENURE\" guard -- sh -c 'echo more >> b'").code, Some(0));
    assert_eq!(stage.owner("b").as_deref(), Some("s1"));
}

#[test]
fn an_agent_that_runs_inside_a_guard_owns_what_it_changes() {
    let stage = Stage::new();
    let mut person = FakeAgent::of_kind(&stage, "person", "terminal");
    fs::create_dir(stage.path("inside")).unwrap();
    fs::copy("/bin/bash", stage.path("inside/claude")).unwrap();
    fs::write(stage.path("payload"), stage.event("s1", "SessionStart").to_string()).unwrap();
    fs::write(stage.path("edit"), stage.edit("s1", "b").to_string()).unwrap();
    let script = "echo early >> a; \"$TENURE\" hook claude < ../payload; \"$TENURE\" hook claude < ../edit; \
                  sh -c \"echo more >> a\"; echo more >> b; touch ../written; while [ ! -e ../go ]; do sleep 0.02; done";
    person.begin(&format!("\"$TENURE\" guard -- ../inside/claude -c '{script}'"));
    wait_until("all is written", || stage.path("written").exists());
    assert_eq!(stage.owner("b").as_deref(), Some("s1"), "by its hook");
    assert_eq!(fs::read_to_string(stage.repository("a")).unwrap(), "one\nearly\nmore\n");
    assert!(stage.owner("a").is_some(), "what it got before its session was known is still its own");
    fs::write(stage.path("go"), "").unwrap();
    let said = person.end();
    assert_eq!((said.code, &*said.errors), (Some(0), ""), "{said:?}");
}

// S4-20, S4-32
#[test]
fn when_an_agent_dies_what_its_guards_started_ends_first() {
    let stage = Stage::with_seconds(1, 30);
    let mut one = FakeAgent::start(&stage, "one");
    one.hook(&stage.event("s1", "SessionStart"));
    one.begin(
        "\"$TENURE\" guard -- sh -c 'exec 3>> a; touch ../open; while :; do echo line >&3; sleep 0.01; done'",
    );
    wait_until("the file is open", || stage.path("open").exists());
    signal(one.process(), "KILL");
    let mut two = FakeAgent::start(&stage, "two");
    let said = two.hook(&stage.edit("s2", "a"));
    assert!(said.allows(), "{said:?}");
    let before = fs::read_to_string(stage.repository("a")).unwrap();
    crate::files_stage::stays("nobody writes any more", std::time::Duration::from_millis(300), || {
        fs::read_to_string(stage.repository("a")).unwrap() == before
    });
}

// S4-20, S4-32
#[test]
fn when_an_agent_inside_a_guard_dies_what_it_left_behind_writes_no_more() {
    let stage = Stage::with_seconds(1, 30);
    let mut person = FakeAgent::of_kind(&stage, "person", "terminal");
    for agent in ["claude", "codex"] {
        fs::create_dir_all(stage.path("inside")).unwrap();
        std::process::Command::new("cp")
            .arg("/bin/bash")
            .arg(stage.path("inside").join(agent))
            .status()
            .unwrap();
    }
    // Whoever opened the file is gone when the agent ends; what it left has it open. Another agent works in the same guard.
    let left = "sh -c \"exec 3>>a; (touch ../open; while :; do echo late >&3; sleep 0.05; done) & \"; \
                while [ ! -e ../end ]; do sleep 0.02; done";
    let other = "echo own >> b; touch ../other; while [ ! -e ../all ]; do sleep 0.02; done";
    fs::write(stage.path("left"), left).unwrap();
    fs::write(stage.path("other.sh"), other).unwrap();
    let script = "../inside/claude ../left & ../inside/codex ../other.sh";
    person.begin(&format!("\"$TENURE\" guard -- bash -c '{script}'"));
    wait_until("both have written", || stage.path("open").exists() && stage.path("other").exists());
    assert!(stage.owner("a").is_some() && stage.owner("b").is_some());
    fs::write(stage.path("end"), "").unwrap();
    wait_until("what the one had is free", || stage.owner("a").is_none());
    let before = fs::read_to_string(stage.repository("a")).unwrap();
    crate::files_stage::stays("nobody writes any more", std::time::Duration::from_millis(500), || {
        fs::read_to_string(stage.repository("a")).unwrap() == before
    });
    assert!(stage.owner("b").is_some(), "the other one lives");
    fs::write(stage.path("all"), "").unwrap();
    assert_eq!(person.end().code, Some(0));
}

#[test]
fn an_agent_that_ends_takes_along_nobody_who_goes_on_with_its_file() {
    let stage = Stage::new();
    assert_eq!(stage.run(&["install", "git"]).code, Some(0));
    let mut person = FakeAgent::of_kind(&stage, "person", "terminal");
    fs::create_dir(stage.path("inside")).unwrap();
    std::process::Command::new("cp").arg("/bin/bash").arg(stage.path("inside/claude")).status().unwrap();
    let inner =
        "echo own >> a; git commit -qam own; touch ../committed; while [ ! -e ../end ]; do sleep 0.02; done";
    fs::write(stage.path("inner"), inner).unwrap();
    let script = "../inside/claude ../inner & agent=$!; while [ ! -e ../committed ]; do sleep 0.02; done; \
                  exec 7>>a; echo mine >&7; touch ../open; wait $agent; sleep 1.5; echo still >&7";
    person.begin(&format!("\"$TENURE\" guard -- bash -c '{script}'"));
    wait_until("the shell goes on with the file", || stage.path("open").exists());
    fs::write(stage.path("end"), "").unwrap();
    let said = person.end();
    assert_eq!((said.code, &*said.errors), (Some(0), ""), "{said:?}");
    assert_eq!(fs::read_to_string(stage.repository("a")).unwrap(), "one\nown\nmine\nstill\n");
}

#[test]
fn what_a_shell_around_an_agent_changes_is_not_the_agents() {
    let stage = Stage::new();
    let mut person = FakeAgent::of_kind(&stage, "person", "terminal");
    fs::create_dir(stage.path("inside")).unwrap();
    std::process::Command::new("cp").arg("/bin/bash").arg(stage.path("inside/claude")).status().unwrap();
    let inner = "echo own >> a; (setsid sh -c \"while [ ! -e ../late ]; do sleep 0.02; done; echo late >> a; touch ../done\" &); \
                 touch ../written; while [ ! -e ../go ]; do sleep 0.02; done";
    fs::write(stage.path("inner"), inner).unwrap();
    let script = "../inside/claude ../inner & while [ ! -e ../written ]; do sleep 0.02; done; echo outer >> b; touch ../outer; wait";
    person.begin(&format!("\"$TENURE\" guard -- bash -c '{script}'"));
    wait_until("both have written", || stage.path("outer").exists());
    let holder = |file: &str| stage.json(&["who", file, "--json"])["file"]["owner"]["holder"].to_string();
    assert!(holder("a").contains("claude"), "{}", holder("a"));
    assert!(!holder("b").contains("claude"), "{}", holder("b"));
    fs::write(stage.path("late"), "").unwrap();
    wait_until("what it left in the background has written what is its own", || stage.path("done").exists());
    assert_eq!(fs::read_to_string(stage.repository("a")).unwrap(), "one\nown\nlate\n");
    fs::write(stage.path("go"), "").unwrap();
    assert_eq!(person.end().code, Some(0));
}

// S4-59
#[test]
fn what_goes_on_in_the_background_begins_no_new_turn() {
    let stage = Stage::with_seconds(1, 1);
    let mut agent = FakeAgent::start(&stage, "one");
    agent.hook(&stage.event("s1", "SessionStart"));
    agent.hook(&stage.event("s1", "Stop"));
    assert_eq!(agent.run("\"$TENURE\" guard -- sh -c 'echo more >> a'").code, Some(0));
    wait_until("it is let go of as after any turn", || stage.owner("a").is_none());
}

#[test]
fn only_a_process_below_the_guard_can_be_spoken_for() {
    let stage = Stage::new();
    let mut agent = FakeAgent::start(&stage, "one");
    assert!(agent.hook(&stage.edit("s1", "a")).allows());
    let ask = json!({
        "speaker": {"agent": "guard", "session": "x"}, "cwd": "/", "paths": [stage.repository("a")], "process": agent.process(),
    });
    let line = format!(
        "curl -s --unix-socket ../tenure/tenure.sock -H 'content-type: application/json' -d '{ask}' http://localhost/v1/files/acquire"
    );
    let said = stage.shell(&line);
    assert!(said.output.contains("is not below the guard that asks"), "{said:?}");
}

// S4-15
#[test]
fn a_guard_relies_on_nothing_that_was_taken_away() {
    let stage = Stage::with_seconds(1, 30);
    let mut person = FakeAgent::of_kind(&stage, "person", "terminal");
    let line =
        "echo 1 >> a; echo 2 >> a; touch ../first; while [ ! -e ../go ]; do sleep 0.02; done; echo 3 >> a";
    person.begin(&format!("\"$TENURE\" guard -- sh -c '{line}'"));
    wait_until("it is written", || stage.path("first").exists());
    let said = stage.run(&["force-release", "a", "--reason", "it hangs"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut other = FakeAgent::start(&stage, "other");
    other.edits(&stage, "s1", "a", "theirs\n");
    fs::write(stage.path("go"), "").unwrap();
    let said = person.end();
    assert_ne!(said.code, Some(0), "{said:?}");
    assert!(said.errors.contains("`a` was not changed: claude (session s1"), "{said:?}");
    assert_eq!(fs::read_to_string(stage.repository("a")).unwrap(), "theirs\n");
}

// S4-15
#[test]
fn a_grant_outlives_the_server_and_what_it_lost_meanwhile_does_not() {
    let stage = Stage::with_seconds(1, 30);
    let mut person = FakeAgent::of_kind(&stage, "person", "terminal");
    let line = "echo 1 >> a; touch ../first; while [ ! -e ../go ]; do sleep 0.02; done; echo 2 >> a";
    person.begin(&format!("\"$TENURE\" guard -- sh -c '{line}'"));
    wait_until("it is written", || stage.path("first").exists());
    signal(stage.daemon().unwrap(), "KILL");
    wait_until("the server is gone", || stage.daemon().is_none());
    let said = stage.run(&["files"]);
    assert_ne!(said.code, Some(0), "nobody serves: {said:?}");
    let mut other = FakeAgent::start(&stage, "other");
    other.hook(&stage.event("s1", "SessionStart"));
    assert_eq!(stage.run(&["force-release", "a", "--reason", "it hangs"]).code, Some(0));
    other.edits(&stage, "s1", "a", "theirs\n");
    fs::write(stage.path("go"), "").unwrap();
    assert_ne!(person.end().code, Some(0));
    assert_eq!(fs::read_to_string(stage.repository("a")).unwrap(), "theirs\n");
}

// S4-15
#[test]
fn what_goes_on_in_the_background_is_still_the_agents_and_keeps_what_is_open() {
    let stage = Stage::with_seconds(1, 1);
    let mut agent = FakeAgent::start(&stage, "one");
    agent.hook(&stage.event("s1", "SessionStart"));
    let line = "(while [ ! -e ../go ]; do sleep 0.02; done; exec 3>> b; touch ../open; while [ ! -e ../end ]; do sleep 0.02; done) > \
                /dev/null 2>&1 & exit 0";
    let said = agent.run(&format!("\"$TENURE\" guard -- sh -c '{line}'"));
    assert_eq!(said.code, Some(0), "{said:?}");
    fs::write(stage.path("go"), "").unwrap();
    wait_until("the file is open", || stage.path("open").exists());
    assert_eq!(stage.owner("b").as_deref(), Some("s1"), "the agent's, though nobody of it is above any more");
    assert!(agent.hook(&stage.edit("s1", "b")).allows());
    agent.hook(&stage.event("s1", "Stop"));
    crate::files_stage::stays("it is open", std::time::Duration::from_millis(2_500), || {
        stage.owner("b").as_deref() == Some("s1")
    });
    agent.hook(&stage.event("s1", "SessionEnd"));
    crate::files_stage::stays("it is still open", std::time::Duration::from_millis(500), || {
        stage.owner("b").as_deref() == Some("s1")
    });
    fs::write(stage.path("end"), "").unwrap();
    wait_until("it is let go of", || stage.owner("b").is_none());
}

// S4-20, S4-32
#[test]
fn nobody_gets_a_dead_agents_file_while_its_guard_still_has_it_open() {
    let stage = Stage::with_seconds(1, 30);
    let mut one = FakeAgent::start(&stage, "one");
    one.hook(&stage.event("s1", "SessionStart"));
    one.begin("\"$TENURE\" guard -- sh -c 'exec 3>> a; echo $PPID > ../keeper; touch ../open; while :; do sleep 0.01; done'");
    wait_until("the file is open", || stage.path("open").exists());
    let keeper: u32 = fs::read_to_string(stage.path("keeper")).unwrap().trim().parse().unwrap();
    signal(keeper, "STOP");
    signal(one.process(), "KILL");
    let mut two = FakeAgent::start(&stage, "two");
    two.begin_hook(&stage.edit("s2", "a"));
    crate::files_stage::stays("its guard has it open", std::time::Duration::from_secs(1), || {
        stage.owner("a").as_deref() != Some("s2")
    });
    signal(keeper, "CONT");
    let said = two.end();
    assert!(said.allows(), "{said:?}");
}

#[test]
fn the_name_of_a_session_that_this_agent_does_not_have_is_not_taken_for_another_owner() {
    let stage = Stage::new();
    let mut agent = FakeAgent::start(&stage, "one");
    assert!(agent.hook(&stage.edit("s1", "a")).allows());
    let said = agent.run("TENURE_SESSION=somebody-elses \"$TENURE\" guard -- sh -c 'echo more >> a'");
    assert_eq!((said.code, &*said.errors), (Some(0), ""), "{said:?}");
}

#[test]
fn only_a_guard_speaks_as_one() {
    let stage = Stage::new();
    let mut agent = FakeAgent::start(&stage, "one");
    agent.hook(&stage.event("s1", "SessionStart"));
    let post = |path: &str, body: serde_json::Value| {
        let line = format!(
            "curl -s --unix-socket ../tenure/tenure.sock -H 'content-type: application/json' -d '{body}' http://localhost/v1/files/{path}"
        );
        stage.shell(&line).output
    };
    let speaker = json!({"agent": "guard", "session": "x"});
    let said = post("acquire", json!({"speaker": speaker, "cwd": "/", "paths": [stage.repository("a")]}));
    assert!(said.contains("is what a guard says"), "{said}");
    for event in ["active", "ended", "turn_ended"] {
        let said = post("events", json!({"speaker": speaker, "event": event}));
        assert!(said.contains("not a guard's to tell"), "{event}: {said}");
    }
}
