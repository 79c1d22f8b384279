//! A disk that fails while the server runs.

use tenure_testkit::server::set_segment_size;
use tenure_testkit::{TestServer, lease_request};

#[test]
fn a_server_that_cannot_write_says_so_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = TestServer::start_in(folder, |settings| set_segment_size(settings, 4_096)).unwrap();
    server.acquire("db:0", "a", 60_000);
    // Without its directory there is no next file, which is needed soon.
    let folder = server.folder.path();
    std::fs::rename(folder.join("data"), folder.join("elsewhere")).unwrap();
    let wishes = (1..1_000).map(|number| lease_request(&format!("db:{number}"), "a", 60_000));
    let refused =
        wishes.map(|request| server.post("/v1/leases", &request)).find(|answer| answer.status != 201);
    let refused = refused.expect("the disk must fail at some time");
    assert!(["UNAVAILABLE", "OUTCOME_UNKNOWN"].contains(&refused.json()["code"].as_str().unwrap()));
    refused.expect_problem(503, refused.json()["code"].as_str().unwrap());
    server.wait_until_ended();
    let reason = server.get("/readyz").expect_problem(503, "UNAVAILABLE");
    assert!(reason["detail"].as_str().unwrap().contains("can no longer be written"), "{reason}");
    assert_eq!(server.get("/healthz").status, 200);
    server.post("/v1/leases", &lease_request("db:0", "a", 60_000)).expect_problem(503, "UNAVAILABLE");
    let end = server.stop_with_outcome().unwrap_err();
    assert!(std::error::Error::source(&end).is_some(), "{end}");
}
