//! What is counted.

use tenure_testkit::{TestServer, lease_request};

#[test]
fn metrics_contain_counts_and_no_names() {
    let server = TestServer::start();
    let (id, token) = server.acquire("secret-resource:1", "secret-holder", 60_000);
    server
        .post("/v1/leases", &lease_request("secret-resource:1", "other-holder", 60_000))
        .expect_problem(409, "HELD");
    server.get("/v1/nowhere/at-all").expect_problem(404, "NOT_FOUND");
    let answer = server.get("/metrics");
    assert_eq!(
        answer.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    let text = answer.text;
    for line in [
        "tenure_ready 1",
        "tenure_leases 1",
        "tenure_waiting 0",
        "tenure_requests_total{route=\"/v1/leases\",method=\"POST\",status=\"201\"} 1",
        "tenure_requests_total{route=\"/v1/leases\",method=\"POST\",status=\"409\"} 1",
        "tenure_requests_total{route=\"none\",method=\"GET\",status=\"404\"} 1",
        "tenure_problems_total{code=\"HELD\"} 1",
        "# TYPE tenure_requests counter",
        "# TYPE tenure_ledger_write_seconds histogram",
    ] {
        assert!(text.lines().any(|found| found == line), "no {line} in {text}");
    }
    assert!(crate::subscribers::metric(&server, "tenure_connections") >= 1, "at least the one that asks");
    let written = text.lines().find_map(|line| line.strip_prefix("tenure_ledger_write_seconds_count "));
    assert!(written.unwrap().parse::<u64>().unwrap() >= 1, "{text}");
    for name in ["secret-resource", "secret-holder", "other-holder", "at-all", &id, &token, &server.token] {
        assert!(!text.contains(name), "{name} in {text}");
    }
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let value = line.rsplit_once(' ').unwrap().1;
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
    server.request("GET /metrics", &[], "").expect_problem(401, "UNAUTHORIZED");
}
