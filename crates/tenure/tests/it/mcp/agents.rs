//! Agents that meet through `tenure mcp`, each with a connection of its own, at the real server.

use serde_json::json;

use crate::mcp::client::{McpAgent, ToolResult, lifecycle_modes};
use tenure_testkit::TestHome;

fn agent(world: &TestHome, name: &str) -> McpAgent {
    McpAgent::start(&mut world.command(&["mcp", "--agent", name]))
}

fn resource(world: &TestHome, path: &str) -> String {
    // The folder of a test may be reached through a link.
    format!("FILE:{}", world.path("").canonicalize().unwrap().join(path).display())
}

fn says(result: &ToolResult, words: &[&str]) {
    for word in words {
        assert!(result.text.contains(word), "{word:?} is not in {result:?}");
    }
}

// S3-4, S3-5, S3-12, O-17
#[test]
fn second_agent_gets_die_and_is_granted_after_the_release() {
    let world = TestHome::new();
    for (number, begin) in lifecycle_modes().into_iter().enumerate() {
        let (ann, bob) = (format!("ann-{number}"), format!("bob-{number}"));
        let one = McpAgent::start_with(&mut world.command(&["mcp", "--agent", &ann]), begin.clone());
        let other = McpAgent::start_with(&mut world.command(&["mcp", "--agent", &bob]), begin);
        let request = json!({"touch": [{"path": "src/lib.rs"}], "ttl_seconds": 30});
        let granted = one.call_successfully("declare", request.clone());
        assert_eq!(granted.verdict(), "GRANTED");
        assert_eq!(granted.data["leases"][0]["resource"], resource(&world, "src/lib.rs"));
        assert_eq!(granted.data["heartbeatEveryMs"], 10_000, "a third of the lease's time");
        says(&granted, &["GRANTED", "`heartbeat` at least every 10 s", "`release`", &granted.leases()[0]]);

        // Nobody is as old as who came first.
        let refused = other.call_successfully("declare", request.clone());
        assert_eq!(refused.verdict(), "DIE");
        assert!(refused.data["retryAfterMs"].as_u64().unwrap() > 0, "{refused:?}");
        assert_eq!(refused.data["blockedBy"], json!([ann]));
        says(&refused, &["DIE", &ann, "Do not touch", "same list after"]);

        assert_eq!(one.call_successfully("release", json!({})).data["released"], json!(granted.leases()));
        let granted = other.call_successfully("declare", request);
        assert_eq!(granted.verdict(), "GRANTED");
        other.call_successfully("release", json!({"lease_ids": granted.leases()}));
    }
}

// S3-4, O-17
#[test]
fn older_agent_is_queued_and_granted_at_its_turn() {
    let world = TestHome::new();
    let (young, old) = (agent(&world, "young"), agent(&world, "old"));
    let held = young.call_successfully("declare", json!({"touch": [{"path": "src/"}]}));
    let manifest = json!({"touch": [{"path": "src/lib.rs", "action": "read"}], "priority_timestamp": 1});
    let queued = old.call_successfully("declare", manifest.clone());
    assert_eq!(queued.verdict(), "WAIT");
    assert!(queued.data["askAgainAfterMs"].as_u64().unwrap() >= 1_000, "{queued:?}");
    says(&queued, &["WAIT", "young", "Do not touch", "with the same list"]);
    says(&old.call_successfully("status", json!({})), &["You wait for these", "src/lib.rs"]);
    let holder = young.call_successfully("who", json!({"path": "src/lib.rs"}));
    assert_eq!((&holder.data["held"], &holder.data["waiting"]), (&json!(true), &json!(["old"])));
    says(&holder, &["young has FILE:", "Waiting, the next one first: old"]);

    young.call_successfully("release", json!({"lease_ids": held.leases()}));
    assert_eq!(old.call_successfully("declare", manifest).verdict(), "GRANTED");
    says(&young.call_successfully("who", json!({"path": "other"})), &["Nobody has", "Nobody waits"]);
}

// S3-9, S3-10
#[test]
fn attempt_keeps_its_priority_across_connections() {
    let world = TestHome::new();
    let priority = |result: &ToolResult| result.data["priority_timestamp"].as_u64().unwrap();
    let first = agent(&world, "ann");
    first.call_successfully("declare", json!({"touch": [{"path": "a"}]}));
    let priority_at_start = priority(&first.call_successfully("status", json!({})));
    assert_eq!(first.disconnect().0, Some(0));
    // Another process, another connection: the same agent.
    let second = agent(&world, "ann");
    let more = second.call_successfully("declare", json!({"touch": [{"path": "b"}]}));
    assert_eq!(more.verdict(), "GRANTED");
    let status = second.call_successfully("status", json!({}));
    assert_eq!(
        (priority(&status), status.leases().len()),
        (priority_at_start, 2),
        "it adds, and gives nothing back"
    );
    let fixed = second.call_with_error("declare", json!({"touch": [{"path": "c"}], "priority_timestamp": 1}));
    assert_eq!(fixed.data["error"]["code"], "PRIORITY_FIXED");
    says(&fixed, &["without `priority_timestamp`"]);

    second.call_successfully("report", json!({"state": "COMPLETED"}));
    second.call_successfully("declare", json!({"touch": [{"path": "a"}]}));
    assert!(
        priority(&second.call_successfully("status", json!({}))) > priority_at_start,
        "a new attempt is younger"
    );
}

// S3-11, S3-14, S3-18, S3-28
#[test]
fn lost_leases_are_reported_as_no_longer_held() {
    let world = TestHome::new();
    let ann = agent(&world, "ann");
    let nothing = ann.call_successfully("heartbeat", json!({}));
    says(&nothing, &["no leases", "`declare`"]);
    let granted =
        ann.call_successfully("declare", json!({"touch": [{"path": "a"}, {"path": "b", "action": "read"}]}));
    let leases = granted.leases();
    assert_eq!(ann.call_successfully("heartbeat", json!({})).data["renewed"].as_array().unwrap().len(), 2);
    ann.call_successfully("release", json!({"lease_ids": [leases[0]]}));
    ann.call_successfully("release", json!({"lease_ids": [leases[0]]}));
    let beaten = ann.call_with_error("heartbeat", json!({"lease_ids": leases}));
    assert_eq!(beaten.data["renewed"][0]["id"], leases[1]);
    assert_eq!(beaten.data["rejected"], json!([{"id": leases[0], "code": "RELEASED"}]));
    says(&beaten, &["NO LONGER yours", &leases[0], "Stop touching"]);
    let truth = ann.call_successfully("status", json!({"lease_ids": leases}));
    assert_eq!(truth.data["reconciled"][&leases[0]]["held"], false);
    assert_eq!(truth.data["reconciled"][&leases[1]]["held"], true);
    says(&truth, &[&format!("lease {} is NOT yours", leases[0]), &format!("lease {} is yours", leases[1])]);
    let foreign = agent(&world, "bob").call_with_error("release", json!({"lease_ids": [leases[1]]}));
    says(&foreign, &["unknown, or another agent's"]);
}

#[test]
fn very_long_names_are_answered() {
    let world = TestHome::new();
    let ann = agent(&world, "ann");
    for length in [5_000, 70_000] {
        for (tool, argument) in [("who", "path"), ("status", "agent_id")] {
            let result = ann.call(tool, json!({argument: "a".repeat(length)}));
            assert!(!result.text.contains("is yours") && result.text.len() < 1_000, "{tool} {length}");
        }
    }
    ann.call_successfully("status", json!({}));
}

// S3-11, S3-30
#[test]
fn heartbeat_for_all_leases_lists_them() {
    let world = TestHome::new();
    let ann = agent(&world, "ann");
    let granted = ann.call_successfully("declare", json!({"touch": [{"path": "a"}, {"path": "b"}]}));
    let one = ann.call_successfully("heartbeat", json!({"lease_ids": [granted.leases()[0]]}));
    assert!(!one.text.contains("not in this list"), "it has another: {one:?}");
    let all = ann.call_successfully("heartbeat", json!({"lease_ids": []}));
    assert_eq!(all.data["renewed"].as_array().unwrap().len(), 2, "some models fill in every field");
    says(&ann.call_with_error("release", json!({"lease_ids": []})), &["leave it out"]);
    // One of them ends without a word to the agent.
    assert!(world.command(&["revoke", &granted.leases()[0], "--reason", "x"]).status().unwrap().success());
    let beaten = ann.call_successfully("heartbeat", json!({}));
    says(&beaten, &[&resource(&world, "b"), "not in this list is not yours"]);
    assert!(!beaten.text.contains(&format!("{} (", resource(&world, "a"))), "{beaten:?}");
    assert!(world.command(&["revoke", &granted.leases()[1], "--reason", "x"]).status().unwrap().success());
    says(&ann.call_successfully("heartbeat", json!({})), &["no leases", "they are over", "stop touching"]);
}

#[test]
fn touch_without_a_lease_is_an_error_with_a_remedy() {
    let world = TestHome::new();
    let ann = agent(&world, "ann");
    ann.call_successfully("declare", json!({"touch": [{"path": "src/"}]}));
    let within = ann.call_successfully(
        "report",
        json!({"touched": [{"path": "src/a.rs"}, {"path": "src/b.rs", "action": "read"}]}),
    );
    assert_eq!(within.data["within"], 2);
    let outside = json!({"touched": [{"path": "src/a.rs"}, {"path": "Cargo.toml"}], "state": "VERIFYING"});
    let violation = ann.call_with_error("report", outside);
    assert_eq!(violation.data["error"]["code"], "SCOPE_VIOLATION");
    assert_eq!(violation.data["outside"][0]["resource"], resource(&world, "Cargo.toml"));
    says(&violation, &["Undo", "`declare`", "Cargo.toml", "VERIFYING was noted"]);
    let status = ann.call_successfully("status", json!({}));
    assert_eq!(status.data["state"], "VERIFYING");
    says(&status, &["without a lease", "Cargo.toml"]);
    let done =
        ann.call_successfully("report", json!({"state": "COMPLETED", "touched": [{"path": "src/a.rs"}]}));
    assert!(done.leases().is_empty(), "it was within before it was released");
}

// S3-8
#[test]
fn restarting_agent_gets_more_time_for_its_leases() {
    let world = TestHome::new();
    let ann = agent(&world, "ann");
    let remaining = |result: &ToolResult| result.data["leases"][0]["remainingMs"].as_u64().unwrap();
    let before = ann.call_successfully("declare", json!({"touch": [{"path": "a"}], "ttl_seconds": 60}));
    let after = ann.call_successfully("report", json!({"state": "DIE_RESTART"}));
    assert!(remaining(&after) > remaining(&before), "{after:?}");
}

#[test]
fn agent_name_defaults_to_the_process_that_started_the_program() {
    let world = TestHome::new();
    let name = |agent: &McpAgent| {
        agent.call_successfully("status", json!({})).data["agent_id"].as_str().unwrap().to_owned()
    };
    let unnamed = McpAgent::start(&mut world.command(&["mcp"]));
    assert!(name(&unnamed).ends_with(&format!(":{}", std::process::id())), "{}", name(&unnamed));
    let named =
        McpAgent::start(world.command(&["mcp"]).env("TENURE_AGENT", "ann").env("TENURE_SESSION", "s"));
    assert_eq!(name(&named), "ann");
    named.call_successfully("declare", json!({"touch": [{"path": "a"}]}));
    assert_eq!(named.call_successfully("status", json!({})).data["session_id"], "s");
    let result = named.call_successfully("status", json!({"agent_id": "bob"}));
    assert_eq!(result.data["agent_id"], "bob");
}

#[test]
fn agents_in_two_copies_of_a_project_conflict_below_a_common_root() {
    let world = TestHome::new();
    for copy in ["one/src", "two/src"] {
        std::fs::create_dir_all(world.path(copy)).unwrap();
    }
    let start = |name: &str, root: &[&str]| {
        let mut command = world.command(&["mcp", "--agent", name]);
        McpAgent::start(command.args(root).current_dir(world.path(&format!("{name}/src"))))
    };
    let manifest = json!({"touch": [{"path": "lib.rs"}]});
    let (one, two) = (start("one", &[]), start("two", &[]));
    assert_eq!(one.call_successfully("declare", manifest.clone()).verdict(), "GRANTED");
    assert_eq!(two.call_successfully("declare", manifest.clone()).verdict(), "GRANTED", "other files");
    let (one, two) = (start("one", &["--root", ".."]), start("two", &["--root", ".."]));
    let granted = one.call_successfully("declare", manifest.clone());
    assert_eq!(granted.data["leases"][0]["resource"], "FILE:src/lib.rs");
    assert_eq!(two.call_successfully("declare", manifest).verdict(), "DIE");
}
