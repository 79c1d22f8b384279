//! The three minutes and the half minute as they are, with nothing shortened.

use std::time::Duration;

use serde_json::json;
use tenure_testkit::{FakeAgent, TestRepository, now, sleep};

/// What an answer may take on a busy machine.
const SLACK: Duration = Duration::from_secs(10);

// S4-24, S4-33, S4-38, S4-56, S4-57, S4-59
#[test]
fn long_retry_is_after_180_seconds_and_idle_release_after_30() {
    let repo = TestRepository::new();
    let (mut one, mut two) = (FakeAgent::start(&repo, "one"), FakeAgent::start(&repo, "two"));
    one.edit_file(&repo, "s1", "a", "two\n");
    let requested_at = now();
    let result = two.run_hook(&repo.edit_payload("s2", "a"));
    let waited = now() - requested_at;
    assert!(waited >= Duration::from_secs(180) && waited < Duration::from_secs(180) + SLACK, "{waited:?}");
    assert!(result.denial_reason().contains("180 s"), "{result:?}");
    let report = &repo.json(&["report", "list", "--json"])["reports"][0];
    assert_eq!(report["retryIntervalSeconds"], json!(180), "{report}");
    let ended = now();
    one.run_hook(&repo.event_payload("s1", "Stop"));
    while !repo.held_files().is_empty() {
        assert!(now() - ended < Duration::from_secs(30) + SLACK, "it is not let go of");
        sleep(Duration::from_millis(200));
    }
    assert!(now() - ended >= Duration::from_secs(30), "not earlier");
}
