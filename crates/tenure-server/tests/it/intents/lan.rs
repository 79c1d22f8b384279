//! Only the local network may ask, before anybody looks at tokens.

use tenure_testkit::TestServer;
use tenure_testkit::intents::{CHANNEL, channel_intent};

fn start_with(allowed: &[&str], proxies: &[&str]) -> TestServer {
    let networks = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    let folder = tempfile::tempdir().unwrap();
    TestServer::start_in(folder, |settings| {
        settings.intents.lan_allowed = networks(allowed);
        settings.intents.trusted_proxies = networks(proxies);
    })
    .unwrap()
}

fn ask(server: &TestServer, forwarded: &[&str]) -> tenure_testkit::Response {
    let mut headers = vec![server.bearer(), "Content-Type: application/json".to_owned()];
    headers.extend(forwarded.iter().map(|line| format!("X-Forwarded-For: {line}")));
    server.request("POST /api/v3/intents", &headers, &channel_intent(CHANNEL).to_string())
}

// S1-46, S1-2, S1-44
#[test]
fn requests_from_outside_the_lan_are_rejected_before_authentication() {
    let server = start_with(&["10.0.0.0/8"], &[]);
    let head = server.ledger_head();
    ask(&server, &[]).expect_problem(403, "LAN_ONLY");
    ask(&server, &["10.0.0.1"]).expect_problem(403, "LAN_ONLY");
    for line in [
        "POST /api/v3/intents",
        "GET /api/v3/sessions",
        "GET /api/v3/sessions/x",
        "DELETE /api/v3/sessions/x",
        "POST /api/v3/worker/guard",
        "POST /api/v3/nowhere",
    ] {
        server.request(line, &[], "").expect_problem(403, "LAN_ONLY");
    }
    assert_eq!(server.ledger_head(), head);
    assert_eq!(server.get("/v1/leases").status, 200, "nothing else is guarded");
}

// S1-46
#[test]
fn behind_a_trusted_proxy_the_forwarded_address_is_checked() {
    let server = start_with(&["10.0.0.0/8"], &["127.0.0.1", "192.0.2.0/24"]);
    for (forwarded, status) in [
        (&["10.1.2.3"][..], 202),
        (&["8.8.8.8, 10.1.2.3"], 202),
        (&["10.1.2.3, 192.0.2.7", "192.0.2.8"], 202),
        (&["::ffff:10.1.2.3"], 202),
        (&["10.1.2.3, 8.8.8.8"], 403),
        (&["10.1.2.3", "8.8.8.8"], 403),
        (&["10.1.2.3, nonsense"], 403),
        (&["10.1.2.3:80"], 403),
        (&[""], 403),
        (&[], 403),
    ] {
        assert_eq!(ask(&server, forwarded).status, status, "{forwarded:?}");
    }
}

#[test]
fn loopback_is_allowed_by_default_and_the_check_can_be_disabled() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(ask(&TestServer::start_in(folder, |_| {}).unwrap(), &["8.8.8.8"]).status, 202);
    let folder = tempfile::tempdir().unwrap();
    let open = TestServer::start_in(folder, |settings| {
        settings.intents.lan_allowed.clear();
        settings.intents.lan_guard = false;
    });
    assert_eq!(ask(&open.unwrap(), &[]).status, 202);
}
