//! `tenure session`, against a server that plays its part.

use serde_json::{Value, json};
use tenure_testkit::TestHome;
use tenure_testkit::fake_server::{FakeServer, ReceivedRequest};

/// `tenure session ARGUMENTS…`: its exit code, what it printed, and what the server received.
fn session(
    arguments: &[&str],
    answers: Vec<(&'static str, Value)>,
) -> (Option<i32>, String, Vec<ReceivedRequest>) {
    let all: Vec<&str> = ["session"].into_iter().chain(arguments.iter().copied()).collect();
    let (done, received) = FakeServer::run(&all, answers);
    (done.code, done.output + &done.errors, received)
}

fn accepted(state: &str) -> (&'static str, Value) {
    ("202 Accepted", json!({ "session_id": "s1", "state": state, "correlationId": "c" }))
}

/// The session, in this state, as the last of so many changes.
fn view(state: &str, outcome: Option<&str>, revision: u64) -> (&'static str, Value) {
    let mut view = json!({
        "session_id": "s1", "state": state, "correlationId": "c", "serviceRef": "1:0:19", "profileID": "hd",
        "revision": revision, "acceptedAt": "2026-11-16T10:00:00.000Z", "changedAt": "2026-11-16T10:00:00.000Z",
    });
    if let Some(outcome) = outcome {
        view["outcome"] = outcome.into();
        view["reason"] = "R_LEASE_BUSY".into();
    }
    ("200 OK", view)
}

fn lines(received: &[ReceivedRequest]) -> Vec<&str> {
    received.iter().map(|request| request.line.as_str()).collect()
}

// S1-5, S1-11
#[test]
fn start_prints_the_accepted_session() {
    let arguments = ["start", "--service", "1:0:19", "--profile", "hd", "--param", "audio=de"];
    let (code, output, requests) = session(&arguments, vec![accepted("NEW")]);
    assert_eq!((code, output.as_str()), (Some(0), "session      s1\nstate        NEW\ncorrelation  c\n"));
    assert_eq!(lines(&requests), ["POST /api/v3/intents"]);
    let body: Value = serde_json::from_str(&requests[0].body).unwrap();
    assert_eq!(body, json!({ "serviceRef": "1:0:19", "profileID": "hd", "params": { "audio": "de" } }));

    let (_, output, _) = session(&[&arguments[..], &["--json"]].concat(), vec![accepted("NEW")]);
    assert_eq!(serde_json::from_str::<Value>(&output).unwrap(), accepted("NEW").1);
}

// S1-33
#[test]
fn start_with_wait_follows_changes_and_sets_the_exit_code() {
    let arguments = ["start", "--service", "1:0:19", "--profile", "hd", "--wait"];
    let answers =
        vec![accepted("NEW"), view("NEW", None, 3), view("STARTING", None, 5), view("RUNNING", None, 6)];
    let (code, output, requests) = session(&arguments, answers);
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("RUNNING"), "{output}");
    let expected = [
        "POST /api/v3/intents",
        "GET /api/v3/sessions/s1",
        "GET /api/v3/sessions/s1?waitMs=30000&since=3",
        "GET /api/v3/sessions/s1?waitMs=30000&since=5",
    ];
    assert_eq!(lines(&requests), expected);

    let answers = vec![accepted("NEW"), view("NEW", None, 3), view("ENDED", Some("REJECTED_BUSY"), 4)];
    let (code, output, _) = session(&arguments, answers);
    assert_eq!(code, Some(1), "it does not run: {output}");
    assert!(output.contains("REJECTED_BUSY"), "{output}");

    let (code, ..) = session(&arguments, vec![accepted("NEW"), view("ENDED", Some("COMPLETED"), 4)]);
    assert_eq!(code, Some(0), "it ran to its end");
}

#[test]
fn show_prints_the_state_and_fails_only_with_wait() {
    let ended = || vec![view("ENDED", Some("REJECTED_NO_TUNER"), 4)];
    assert_eq!(session(&["show", "s1"], ended()).0, Some(0));
    assert_eq!(session(&["show", "s1", "--wait"], ended()).0, Some(1));
    let (_, output, requests) = session(&["show", "a/b", "--json"], ended());
    assert_eq!(serde_json::from_str::<Value>(&output).unwrap(), ended()[0].1);
    assert_eq!(lines(&requests), ["GET /api/v3/sessions/a%2Fb"]);
    let unknown = json!({
        "type": "https://example.org/NOT_FOUND", "title": "There is nothing here", "status": 404, "code": "NOT_FOUND",
        "detail": "no such session",
    });
    let (code, output, _) = session(&["show", "s1"], vec![("404 Not Found", unknown)]);
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("no such session"), "{output}");
}

#[test]
fn stop_returns_at_once_unless_wait_is_set() {
    let (code, output, requests) = session(&["stop", "s1"], vec![accepted("STOPPING")]);
    assert_eq!((code, lines(&requests)), (Some(0), vec!["DELETE /api/v3/sessions/s1"]), "{output}");
    let answers = vec![accepted("STOPPING"), view("STOPPING", None, 8), view("ENDED", Some("STOPPED"), 9)];
    let (code, output, requests) = session(&["stop", "s1", "--wait"], answers);
    assert_eq!((code, requests.len()), (Some(0), 3), "{output}");
    assert!(output.contains("STOPPED"), "{output}");
}

#[test]
fn list_shows_all_sessions_or_those_in_one_state() {
    let sessions = |all: &[(&str, Value)]| {
        let sessions: Vec<_> = all.iter().map(|(_, view)| view.clone()).collect();
        vec![("200 OK", json!({ "sessions": sessions }))]
    };
    let both = [view("RUNNING", None, 2), view("ENDED", Some("REJECTED_BUSY"), 1)];
    let (code, output, requests) = session(&["list"], sessions(&both));
    assert_eq!((code, lines(&requests)), (Some(0), vec!["GET /api/v3/sessions"]));
    assert!(output.starts_with("SESSION") && output.lines().count() == 3, "{output}");
    let (_, output, requests) = session(&["list", "--state", "running"], sessions(&[]));
    assert_eq!(
        (output.as_str(), lines(&requests)),
        ("No sessions.\n", vec!["GET /api/v3/sessions?state=RUNNING"])
    );
    let (_, output, _) = session(&["list", "--json"], sessions(&both));
    assert_eq!(serde_json::from_str::<Value>(&output).unwrap(), sessions(&both)[0].1);
}

// S1-5, S1-6: the real server, before a worker is there.
#[test]
fn session_is_found_again_by_its_intent_and_stopped() {
    let home = TestHome::new();
    let start = ["session", "start", "--service", "1:0:19", "--profile", "hd", "--json"];
    let first = home.json(&start);
    assert_eq!((&first["state"], home.json(&start)), (&"NEW".into(), first.clone()), "the same session");
    let id = first["session_id"].as_str().unwrap();
    let other = home.json(&[&start[..], &["--param", "audio=de", "--correlation-id", "mine"]].concat());
    assert_eq!(other["correlationId"], "mine");
    assert_ne!(other["session_id"], first["session_id"]);
    let listed = home.json(&["session", "list", "--state", "new", "--json"]);
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2);

    let stopped = home.run(&["session", "stop", id, "--wait"]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert!(stopped.output.contains("R_STOPPED"), "{stopped:?}");
    assert_eq!(home.run(&["session", "show", id]).code, Some(0));
    assert_eq!(home.run(&["session", "show", id, "--wait"]).code, Some(1), "it does not run");
    assert_ne!(home.json(&start)["session_id"], first["session_id"], "what is over is not found again");
    assert_eq!(home.run(&["session", "show", "nothing"]).code, Some(1));
    let wrong = home.run(&["session", "start", "--service", "a|b", "--profile", "hd"]);
    assert_eq!(wrong.code, Some(64), "{wrong:?}");
}

// S1-3: what the token may not do, nobody does.
#[test]
fn token_without_the_scope_cannot_start_a_session() {
    let home = TestHome::new();
    let made = home.run(&["token", "create", "ci", "--scope", "leases:write"]);
    let mut command = home.command(&["session", "start", "--service", "1:0:19", "--profile", "hd"]);
    let refused = command.env("TENURE_TOKEN", made.output.trim_end()).output().unwrap();
    assert_eq!(refused.status.code(), Some(77));
    assert_eq!(home.run(&["session", "list"]).output, "No sessions.\n");
}
