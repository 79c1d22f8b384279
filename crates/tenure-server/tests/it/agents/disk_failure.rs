//! A disk that fails while a manifest is judged.

use serde_json::json;
use tenure_testkit::TestServer;
use tenure_testkit::agents::manifest;
use tenure_testkit::server::set_segment_size;

// O-18
#[test]
fn a_manifest_is_not_granted_when_the_ledger_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = TestServer::start_in(folder, |settings| set_segment_size(settings, 8_192)).unwrap();
    server.declare_mutations("a", 1, &["first"]);
    // Without its directory there is no next file, which is needed soon.
    let place = server.folder.path().to_owned();
    std::fs::rename(place.join("data"), place.join("elsewhere")).unwrap();
    let mut granted = vec!["FILE:first".to_owned()];
    let refused = (0..1_000).find_map(|number| {
        let path = format!("file-{number}");
        let answer = server.post("/v1/manifest", &manifest("a", 1, &[("MUTATES", &path)]));
        if answer.status == 200 {
            granted.push(format!("FILE:{path}"));
            return None;
        }
        Some((path, answer))
    });
    let (path, answer) = refused.expect("the disk must fail at some time");
    let code = answer.json()["code"].as_str().unwrap().to_owned();
    assert!(["UNAVAILABLE", "OUTCOME_UNKNOWN"].contains(&code.as_str()), "{answer:?}");
    answer.expect_problem(503, &code);
    assert!(!answer.text.contains("GRANTED") && !answer.text.contains("Idempotency-Key"), "{answer:?}");
    server.wait_until_ended();
    let also = server.post("/v1/manifest", &manifest("b", 2, &[("MUTATES", "unrelated")]));
    also.expect_problem(503, "UNAVAILABLE");
    server.post_agent_leases("reconcile", "a", &[]).expect_problem(503, "UNAVAILABLE");
    assert!(server.stop_with_outcome().is_err());
    std::fs::rename(place.join("elsewhere"), place.join("data")).unwrap();
    let folder = std::mem::replace(&mut server.folder, tempfile::tempdir().unwrap());
    drop(server);
    let server = TestServer::start_in(folder, |settings| set_segment_size(settings, 8_192)).unwrap();
    // What was granted is, and what was not is not, unless nobody knew.
    let held: Vec<_> = server.agent("a")["leases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lease| lease["resource"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        held.iter().filter(|name| **name != format!("FILE:{path}")).collect::<Vec<_>>(),
        granted.iter().collect::<Vec<_>>()
    );
    if code == "UNAVAILABLE" {
        assert_eq!(held, granted, "nothing happened, as it said");
    }
    assert_eq!(server.declare(&manifest("b", 2, &[("MUTATES", "unrelated")]))["verdict"], json!("GRANTED"));
}
