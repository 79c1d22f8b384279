//! Who waits, who dies, and who gets on.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_testkit::agents::{lease_ids, manifest, with_field};
use tenure_testkit::{TestServer, lease_request, sleep, wait_until};

const PREDICATES: [&str; 6] = ["PROVIDES", "CONSUMES", "DEPENDS_ON", "MUTATES", "DELETES", "RENAMES"];

fn verdict(value: &Value) -> &str {
    value["verdict"].as_str().unwrap()
}

// O-17, S3-5
#[test]
fn compatible_modes_of_agents_are_one_table() {
    let server = TestServer::start();
    let looks = |predicate: &str| ["CONSUMES", "DEPENDS_ON"].contains(&predicate);
    let together = |one: &str, other: &str| {
        (looks(one) || one == "PROVIDES") && looks(other) || looks(one) && other == "PROVIDES"
    };
    let mut number = 0;
    for one in PREDICATES {
        for other in PREDICATES {
            number += 1;
            let path = format!("file-{number}");
            let first = server.declare(&manifest(&format!("a{number}"), 1, &[(one, &path)]));
            assert_eq!(verdict(&first), "GRANTED");
            let second = server.declare(&manifest(&format!("b{number}"), 2, &[(other, &path)]));
            let expected = if together(one, other) { "GRANTED" } else { "DIE" };
            assert_eq!(verdict(&second), expected, "{one} and {other}");
        }
    }
}

// O-17
#[test]
fn a_manifest_is_granted_completely_or_not_at_all() {
    let server = TestServer::start();
    server.declare_mutations("young", 30, &["x"]);
    server.declare_mutations("old", 10, &["y"]);
    let intents = [("MUTATES", "free"), ("MUTATES", "x")];
    let waiting = server.declare(&manifest("middle", 20, &intents));
    assert_eq!((verdict(&waiting), &waiting["blockedBy"]), ("WAIT", &json!(["young"])));
    let dies =
        server.declare(&manifest("middle", 20, &[("MUTATES", "x"), ("MUTATES", "y"), ("MUTATES", "free")]));
    assert_eq!((verdict(&dies), &dies["blockedBy"]), ("DIE", &json!(["old", "young"])));
    assert_eq!(server.agent("middle")["leases"], json!([]), "nothing of it");
    let free = server.get("/v1/resource/FILE:free/state").json();
    assert_eq!((&free["held"], &free["waiting"]), (&json!(false), &json!(["middle"])));
}

// O-17
#[test]
fn of_two_agents_of_equal_age_the_smaller_name_is_older() {
    let server = TestServer::start();
    server.declare_mutations("m", 5, &["x"]);
    assert_eq!(verdict(&server.declare(&manifest("a", 5, &[("MUTATES", "x")]))), "WAIT");
    assert_eq!(verdict(&server.declare(&manifest("z", 5, &[("MUTATES", "x")]))), "DIE");
}

#[test]
fn a_waiting_agent_is_granted_and_finds_its_leases_by_the_same_manifest() {
    let server = TestServer::start();
    let lease = server.declare_mutations("young", 20, &["x"]);
    let request = manifest("old", 10, &[("MUTATES", "x"), ("CONSUMES", "y")]);
    assert_eq!(verdict(&server.declare(&request)), "WAIT");
    let head = server.ledger_head();
    let again = server.declare(&request);
    assert_eq!((verdict(&again), &again["position"]), ("WAIT", &json!(1)), "the same wait");
    assert_eq!(server.ledger_head(), head, "and no event");
    let waiting = &server.agent("old")["waits"];
    assert_eq!(waiting[0]["wants"][0], json!({ "resource": "FILE:x", "predicate": "MUTATES" }));
    assert_eq!(waiting[0]["blockedBy"], json!(["young"]));
    server.release_agent_leases("young", &lease);
    // It is granted in the same moment, without anybody asking.
    let held: Vec<_> =
        server.agent("old")["leases"].as_array().unwrap().iter().map(|lease| lease["id"].clone()).collect();
    assert_eq!(held.len(), 2);
    let granted = server.declare(&request);
    assert_eq!((verdict(&granted), json!(lease_ids(&granted))), ("GRANTED", json!(held)), "those leases");
    assert_eq!(server.agent("old")["waits"], json!([]));
}

#[test]
fn waiting_agents_are_granted_in_age_order() {
    let server = TestServer::start();
    let lease = server.declare_mutations("d", 40, &["x"]);
    for (agent, priority) in [("c", 30), ("a", 10)] {
        server.declare(&manifest(agent, priority, &[("MUTATES", "x")]));
    }
    // An older one came in front of it: it would wait for an older one now, so it has to come back later.
    let third = server.agent("c");
    assert_eq!((&third["waits"], &third["deaths"]), (&json!([]), &json!(1)));
    server.release_agent_leases("d", &lease);
    assert_eq!(server.agent("a")["leases"].as_array().unwrap().len(), 1);
    let state = server.get("/v1/resource/FILE:x/state").json();
    assert_eq!(state["leases"][0]["agent_id"], json!("a"));
}

#[test]
fn a_wait_times_out_and_grants_nothing_later() {
    let server = TestServer::start();
    let lease = server.declare_mutations("young", 20, &["x"]);
    let request = with_field(manifest("old", 10, &[("MUTATES", "x")]), "waitTimeoutMs", json!(50));
    assert_eq!(server.declare(&request)["waitTimeoutMs"], json!(50));
    wait_until("over", || server.agent("old")["waits"] == json!([]));
    server.release_agent_leases("young", &lease);
    assert_eq!(server.agent("old")["leases"], json!([]));
    // What is not said is a minute, and more than ten minutes is cut to that.
    server.declare_mutations("young", 20, &["x"]);
    let usual = server.declare(&manifest("old", 10, &[("MUTATES", "x")]));
    assert_eq!(usual["waitTimeoutMs"], json!(60_000));
    let long = with_field(manifest("older", 5, &[("MUTATES", "x")]), "waitTimeoutMs", json!(u64::MAX));
    assert_eq!(server.declare(&long)["waitTimeoutMs"], json!(600_000));
}

#[test]
fn die_revokes_leases_requested_by_a_waiting_older_agent() {
    let server = TestServer::start();
    server.declare_mutations("old", 10, &["x"]);
    let young = server.declare_mutations("young", 20, &["y", "z"]);
    assert_eq!(verdict(&server.declare(&manifest("old", 10, &[("MUTATES", "y")]))), "WAIT");
    let dies = server.declare(&manifest("young", 20, &[("MUTATES", "x")]));
    assert_eq!((verdict(&dies), &dies["ended"]), ("DIE", &json!([young[0]])), "{dies}");
    let truth = server.reconcile("young", &young);
    assert_eq!((&truth[&young[0]]["end"], &truth[&young[1]]["held"]), (&json!("DIED"), &json!(true)));
    assert_eq!(truth[&young[0]]["heldBy"], json!(["old"]), "it was granted in the same moment");
    assert_eq!(server.heartbeat("young", &young)["rejected"][0]["code"], json!("REVOKED"));
}

#[test]
fn a_retry_before_the_backoff_gets_the_same_die_and_the_backoff_doubles() {
    let server = TestServer::start_with(|settings| {
        settings.agents.backoff_ms = 1_000;
        settings.agents.max_backoff_ms = 2_000;
    });
    server.declare_mutations("old", 10, &["x"]);
    let request = manifest("young", 20, &[("MUTATES", "x")]);
    let first = server.declare(&request)["retryAfterMs"].as_u64().unwrap();
    assert!((1_000..=1_251).contains(&first), "{first}");
    let head = server.ledger_head();
    let again = server.declare(&request)["retryAfterMs"].as_u64().unwrap();
    assert!(again <= first && server.ledger_head() == head, "{again}");
    sleep(Duration::from_millis(first));
    let second = server.declare(&request)["retryAfterMs"].as_u64().unwrap();
    assert!((2_000..=2_501).contains(&second), "{second}");
    assert_eq!(server.agent("young")["deaths"], json!(2));
}

// S3-9
#[test]
fn an_agents_priority_is_fixed_for_its_attempt() {
    let server = TestServer::start();
    let lease = server.declare_mutations("a", 10, &["x"]);
    for priority in [5, 11] {
        let refused = server.post("/v1/manifest", &manifest("a", priority, &[("MUTATES", "y")]));
        let problem = refused.expect_problem(409, "PRIORITY_FIXED");
        assert_eq!(problem["priority_timestamp"], json!(10));
    }
    // The smallest timestamp of its intents is its priority, where it does not say one.
    let mut implied = manifest("b", 0, &[("MUTATES", "z"), ("MUTATES", "w")]);
    implied.as_object_mut().unwrap().remove("priority_timestamp");
    implied["intents"][0]["timestamp"] = json!(30);
    implied["intents"][1]["timestamp"] = json!(20);
    assert_eq!(verdict(&server.declare(&implied)), "GRANTED");
    assert_eq!(server.agent("b")["priority_timestamp"], json!(20));
    assert_eq!(server.reconcile("a", &lease)[&lease[0]]["held"], json!(true));
}

// S3-10
#[test]
fn an_agent_that_aborts_may_restart_with_a_larger_priority() {
    let server = TestServer::start();
    let lease = server.declare_mutations("a", 10, &["x"]);
    server.declare_mutations("young", 20, &["y"]);
    assert_eq!(verdict(&server.declare(&manifest("a", 10, &[("MUTATES", "y")]))), "WAIT");
    let aborted = server.report_agent_state("a", "ABORTED").json();
    assert_eq!((&aborted["leases"], &aborted["waits"]), (&json!([]), &json!([])));
    assert_eq!(server.reconcile("a", &lease)[&lease[0]]["end"], json!("ABORTED"));
    let older = server.post("/v1/manifest", &manifest("a", 9, &[("MUTATES", "x")]));
    older.expect_problem(409, "PRIORITY_FIXED");
    assert_eq!(server.declare_mutations("a", 11, &["x"]).len(), 1);
    assert_eq!(server.agent("a")["priority_timestamp"], json!(11));
}

#[test]
fn an_agent_gets_die_behind_a_plain_lease_and_a_plain_request_is_denied_by_an_agent() {
    let server = TestServer::start();
    server.acquire("FILE:src/", "person", 60_000);
    let dies = server.declare(&manifest("a", 0, &[("MUTATES", "src/lib.rs")]));
    assert_eq!((verdict(&dies), &dies["blockedBy"]), ("DIE", &json!(["person"])));
    server.declare_mutations("b", 20, &["docs/a.md"]);
    let refused =
        server.post("/v1/leases", &lease_request("FILE:docs/", "person", 60_000)).expect_problem(409, "HELD");
    assert_eq!(refused["holder"], json!("b"));
}

#[test]
fn leases_on_a_folder_and_on_a_path_below_it_conflict() {
    let server = TestServer::start();
    server.declare_mutations("a", 1, &["src/"]);
    for path in ["src/lib.rs", "src/", "src/**", "./src//deep/../".trim_end_matches("../")] {
        let dies = server.declare(&manifest("b", 2, &[("CONSUMES", path)]));
        assert_eq!(verdict(&dies), "DIE", "{path}");
    }
    assert_eq!(verdict(&server.declare(&manifest("c", 3, &[("MUTATES", "src")]))), "GRANTED");
}

#[test]
fn a_wait_survives_a_restart_and_is_granted() {
    let server = TestServer::start();
    server.declare_mutations("young", 20, &["x"]);
    let request = manifest("old", 10, &[("MUTATES", "x")]);
    assert_eq!(verdict(&server.declare(&request)), "WAIT");
    let server = TestServer::start_in(server.stop(), |_| {}).unwrap();
    assert_eq!(server.agent("old")["waits"][0]["blockedBy"], json!(["young"]));
    assert_eq!(server.report_agent_state("young", "COMPLETED").status, 200);
    let folder = server.stop();
    let server = TestServer::start_in(folder, |_| {}).unwrap();
    let granted = server.declare(&request);
    assert_eq!(verdict(&granted), "GRANTED", "{granted}");
}
