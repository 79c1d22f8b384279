//! What stands in the ledger: what a restart keeps, what ends together, and what is signed.

use serde_json::json;
use tenure_core::authority::LeaseScope;
use tenure_core::kernel::{Event, decode};
use tenure_ledger::open_read_only;
use tenure_ledger::signing::{Passport, TrustedKeys};
use tenure_registrar::runtime::verify_ledger_directory;
use tenure_testkit::TestServer;

use super::{claim, derive, granted, show_work, spend};

// S2-108, S2-109
#[test]
fn a_restart_keeps_budgets_and_keys_exactly() {
    let server = TestServer::start();
    let parent = claim(&server, "plan", &json!({"tokens": 1_000, "toolCalls": 7}));
    let child = granted(&derive(&server, &parent, "part", 60_000, &json!({"tokens": 300})));
    spend(&server, &child, 120, None);
    spend(&server, &parent, 50, Some("once"));
    let before = [&parent, &child].map(|lease| show_work(&server, lease)["work"].clone());
    let server = TestServer::start_in(server.stop(), |_| {}).unwrap();
    assert_eq!([&parent, &child].map(|lease| show_work(&server, lease)["work"].clone()), before);
    let again = spend(&server, &parent, 50, Some("once"));
    assert_eq!((again.status, &again.json()["remaining"]["tokens"]), (200, &json!(650)), "{again:?}");
    assert_eq!(show_work(&server, &parent)["work"], before[0], "it was spent once");
    assert_eq!(super::code(&spend(&server, &child, 181, None)).1, "BUDGET_EXCEEDED");
    assert_eq!(spend(&server, &child, 180, None).status, 200);
}

// S2-109
#[test]
fn a_lease_and_its_descendants_end_in_one_batch() {
    let server = TestServer::start();
    let root = claim(&server, "root", &json!({}));
    let mut last = root.clone();
    for depth in 0..5 {
        last = granted(&derive(&server, &last, &format!("at-{depth}"), 60_000 - depth * 5_000, &json!({})));
    }
    let beside = granted(&derive(&server, &root, "beside", 60_000, &json!({})));
    let release = json!({ "lease_id": root.id, "token": root.token });
    assert_eq!(server.post("/v1/work/release", &release).status, 200);
    assert_eq!(show_work(&server, &beside)["lease"]["state"], "RELEASED");
    let folder = server.stop();
    let archive = open_read_only(&folder.path().join("data")).unwrap();
    let tag = archive.ledger().tag();
    let mut batches = archive.batches();
    let mut ends = Vec::new();
    while let Some(placed) = batches.next_batch().unwrap() {
        let events = placed.batch.records.iter().map(|record| decode(record, tag).unwrap());
        let ended = events.flatten().filter(|event| event.ended_lease().is_some());
        ends.push(ended.collect::<Vec<Event>>());
    }
    ends.retain(|ended| !ended.is_empty());
    let [together] = &ends[..] else { panic!("they ended in {} writes", ends.len()) };
    assert_eq!(together.len(), 7);
    assert!(matches!(together.last(), Some(Event::Released { .. })), "the root last: {together:?}");
}

// S2-110, O-16
#[test]
fn passports_prove_scope_and_budget_of_a_derived_lease() {
    let server = TestServer::start();
    let parent = claim(&server, "plan", &json!({"tokens": 1_000}));
    let body = json!({
        "lease_id": parent.id, "token": parent.token, "work_id": "part", "actor_id": "b", "ttlMs": 60_000,
        "scope": {"tools": ["search"]}, "budget": {"tokens": 300},
    });
    let child = granted(&server.post("/v1/work/derive", &body));
    spend(&server, &child, 100, None);
    let renew = json!({ "lease_id": child.id, "token": child.token, "ttlMs": 90_000 });
    let renewed = server.post("/v1/work/renew", &renew);
    let after = tenure_testkit::json_string(&renewed.json()["passport"]);
    let folder = server.stop();
    let found = verify_ledger_directory(&folder.path().join("data"), &mut |_, _| {}).unwrap();
    let trusted: TrustedKeys = found.keyring.active_keys().collect();
    // A spend, and a renewal after it, leave what was given as it was signed first.
    for passport in [&child.passport, &after] {
        let claims = Passport::parse(passport).unwrap().verify(&trusted).unwrap();
        let authority = claims.terms.authority.unwrap();
        assert_eq!(claims.lease_id, child.id);
        assert_eq!(authority.parent.map(|parent| claims.ledger.lease_id(parent)), Some(parent.id.clone()));
        assert_eq!(authority.scope, LeaseScope::limited([], ["search"], []).unwrap());
        assert_eq!(authority.budget.tokens, 300);
    }
}
