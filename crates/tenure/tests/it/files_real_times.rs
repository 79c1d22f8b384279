//! The three minutes and the half minute as they are, with nothing shortened.

use std::time::Duration;

use serde_json::json;
use tenure_testkit::{FakeAgent, Repository, now, pause};

/// What an answer may take on a busy machine.
const SLACK: Duration = Duration::from_secs(10);

// S4-24, S4-33, S4-38, S4-56, S4-57, S4-59
#[test]
fn long_retry_is_after_180_seconds_and_idle_release_after_30() {
    let repo = Repository::new();
    let (mut one, mut two) = (FakeAgent::start(&repo, "one"), FakeAgent::start(&repo, "two"));
    one.edits(&repo, "s1", "a", "two\n");
    let asked = now();
    let said = two.hook(&repo.edit("s2", "a"));
    let waited = now() - asked;
    assert!(waited >= Duration::from_secs(180) && waited < Duration::from_secs(180) + SLACK, "{waited:?}");
    assert!(said.reason().contains("180 s"), "{said:?}");
    let report = &repo.json(&["report", "list", "--json"])["reports"][0];
    assert_eq!(report["retryIntervalSeconds"], json!(180), "{report}");
    let ended = now();
    one.hook(&repo.event("s1", "Stop"));
    while !repo.held().is_empty() {
        assert!(now() - ended < Duration::from_secs(30) + SLACK, "it is not let go of");
        pause(Duration::from_millis(200));
    }
    assert!(now() - ended >= Duration::from_secs(30), "not earlier");
}
