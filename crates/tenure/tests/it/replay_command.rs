//! `tenure replay` shows who held what at a moment.

use serde_json::Value;
use tenure_testkit::sample_ledger::SampleLedger;

fn at(history: &SampleLedger, moment: &str) -> Value {
    history.run(&["replay", "--json", "--at", moment]).expect_json()
}

#[test]
fn replay_at_a_tick_shows_the_state_of_all_earlier_events() {
    let history = SampleLedger::create(&[]);
    let log = history.events();
    let tick_of = |kind: &str, number: usize| {
        let event = log.iter().filter(|event| event["type"] == kind).nth(number).unwrap();
        event["tick"].as_u64().unwrap()
    };
    let before = at(&history, &(tick_of("lease.issued", 0) - 1).to_string());
    assert_eq!((&before["live"], &before["leases"]), (&0.into(), &Value::Array(Vec::new())));
    // At the very tick of its issue, it is there.
    let first = at(&history, &tick_of("lease.issued", 0).to_string());
    assert_eq!((&first["live"], &first["leases"][0]["resource"]), (&1.into(), &"db:1".into()));
    assert_eq!((&first["leases"][0]["remainingMs"], &first["secondOpinion"]), (&1_000.into(), &true.into()));
    let all = at(&history, &tick_of("lease.issued", 2).to_string());
    assert_eq!((&all["live"], &all["ended"]), (&3.into(), &0.into()));
    let released = at(&history, &tick_of("lease.released", 0).to_string());
    assert_eq!((&released["live"], &released["ended"]), (&2.into(), &1.into()));
    let last = at(&history, "last");
    assert_eq!((&last["live"], &last["ended"]), (&1.into(), &2.into()));
    assert_eq!(last["lastSeq"].as_u64(), Some(log.len() as u64));
    let lease = &last["leases"][0];
    assert_eq!(lease["id"], history.held["lease"]["id"]);
    assert_eq!((&lease["renewalCount"], &lease["fence"]), (&1.into(), &history.held["lease"]["fence"]));
    assert_eq!(lease["expiresAt"], history.held["lease"]["expiresAt"]);
    let now = at(&history, "now");
    assert!(now["tick"].as_u64() >= last["tick"].as_u64(), "{now}");
}

#[test]
fn lease_past_its_expiry_is_shown_as_expired_before_the_sweep() {
    let history = SampleLedger::create(&[]);
    let log = history.events();
    let expired = log.iter().find(|event| event["type"] == "lease.expired").unwrap();
    let issued = log.iter().find(|event| event["type"] == "lease.issued").unwrap();
    let expires = issued["lease"]["expiresTick"].as_u64().unwrap();
    assert!(expires < expired["tick"].as_u64().unwrap(), "it is announced after it is over");
    let expired_state = at(&history, &expires.to_string());
    assert_eq!((&expired_state["live"], &expired_state["over"]), (&1.into(), &1.into()));
    assert_eq!(
        (&expired_state["leases"][0]["state"], &expired_state["leases"][0]["remainingMs"]),
        (&"OVER".into(), &0.into())
    );
    let still = at(&history, &(expires - 1).to_string());
    assert_eq!((&still["live"], &still["over"]), (&2.into(), &0.into()), "half-open");
    let text = history.run(&["replay", "--at", &expires.to_string()]);
    let line = text.output.lines().find(|line| line.contains("db:1")).unwrap();
    assert!(line.ends_with("over"), "{line}");
    assert!(text.output.contains("1 live, 1 over but not announced, 0 waiting"), "{}", text.output);
}

#[test]
fn invalid_tick_is_a_usage_error() {
    let history = SampleLedger::create(&[]);
    for moment in ["yesterday", "-1", "1.5", ""] {
        assert_eq!(history.run(&["replay", &format!("--at={moment}")]).code, Some(64), "{moment}");
    }
    assert_eq!(history.run(&["replay"]).code, Some(64));
}
