//! Tokens, hosts, origins, and addresses that do not exist.

use tenure_testkit::TestServer;

#[test]
fn only_health_routes_are_accessible_without_a_token() {
    let server = TestServer::start();
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.request(&format!("GET {path}"), &[], "").status, 200);
    }
    let wrong = [
        vec![],
        vec!["Authorization: Bearer tenure_admin_wrong".to_owned()],
        vec!["Authorization: Bearer ".to_owned()],
        vec![format!("Authorization: Basic {}", server.token)],
        vec![format!("Authorization: {}", server.token)],
        vec![server.bearer(), server.bearer()],
        vec![format!("{}x", server.bearer())],
    ];
    let lines = [
        "GET /v1/leases",
        "POST /v1/leases",
        "GET /v1/leases/x",
        "POST /v1/leases/x/renew",
        "POST /v1/leases/x/release",
    ];
    for headers in &wrong {
        for line in lines {
            let answer = server.request(line, headers, "");
            answer.expect_problem(401, "UNAUTHORIZED");
            assert!(answer.header("www-authenticate").is_some_and(|value| value.starts_with("Bearer")));
        }
    }
    let lower = format!("authorization: bearer {}", server.token);
    assert_eq!(server.request("GET /v1/leases", &[lower], "").status, 200);
}

#[test]
fn with_a_preset_admin_token_no_file_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let token = "a-token-from-the-environment";
    let preset = tenure_server::AdminToken::from_configuration(token).unwrap();
    let server = TestServer::start_in(folder, |settings| settings.admin_token = Some(preset)).unwrap();
    assert!(!server.folder.path().join("data/admin.token").exists());
    let bearer = format!("Authorization: Bearer {token}");
    assert_eq!(server.request("GET /v1/leases", &[bearer], "").status, 200);
}

#[test]
fn a_preset_admin_token_replaces_the_one_in_the_file() {
    let server = TestServer::start();
    let old = server.bearer();
    let preset = tenure_server::AdminToken::from_configuration("a-token-from-the-environment").unwrap();
    let server = TestServer::start_in(server.stop(), |settings| settings.admin_token = Some(preset)).unwrap();
    server.request("GET /v1/leases", &[old], "").expect_problem(401, "UNAUTHORIZED");
}

#[test]
fn unknown_routes_and_methods_are_problems() {
    let server = TestServer::start();
    for headers in [vec![], vec![server.bearer()]] {
        server.request("GET /nowhere", &headers, "").expect_problem(404, "NOT_FOUND");
        server.request("DELETE /v1/leases", &headers, "").expect_problem(405, "METHOD_NOT_ALLOWED");
    }
    for path in ["/", "/nowhere", "/v1", "/v1/leases/", "/v1/leases/x/y", "/v1/leases/x/renew/z"] {
        server.get(path).expect_problem(404, "NOT_FOUND");
    }
    for (line, allowed) in [
        ("DELETE /v1/leases", "GET,HEAD,POST"),
        ("PUT /v1/leases/x", "GET,HEAD"),
        ("GET /v1/leases/x/renew", "POST"),
        ("GET /v1/leases/x/release", "POST"),
        ("POST /healthz", "GET,HEAD"),
    ] {
        let answer = server.request(line, &[server.bearer()], "");
        answer.expect_problem(405, "METHOD_NOT_ALLOWED");
        assert_eq!(answer.header("allow"), Some(allowed), "{line}");
    }
}

#[test]
fn foreign_hosts_and_origins_are_rejected() {
    let server = TestServer::start();
    let port = server.address.port();
    let get = |headers: &str| {
        let request = format!("GET /healthz HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
        server.exchange(request.as_bytes())
    };
    for host in ["evil.example", &format!("evil.example:{port}"), "127.0.0.1", "127.0.0.1:1", ""] {
        get(&format!("Host: {host}\r\n")).expect_problem(421, "FOREIGN_HOST");
    }
    get("").expect_problem(421, "FOREIGN_HOST");
    get(&format!("Host: 127.0.0.1:{port}\r\nHost: 127.0.0.1:{port}\r\n")).expect_problem(421, "FOREIGN_HOST");
    // The address in the request line counts too.
    let through = |host: &str| {
        let request = format!(
            "GET http://{host}/healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        );
        server.exchange(request.as_bytes())
    };
    through("evil.example").expect_problem(421, "FOREIGN_HOST");
    assert_eq!(through(&format!("127.0.0.1:{port}")).status, 200);
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}")] {
        assert_eq!(get(&format!("Host: {host}\r\n")).status, 200);
        assert_eq!(get(&format!("Host: {host}\r\nOrigin: http://{host}\r\n")).status, 200);
        for origin in ["null", "http://evil.example", "https://127.0.0.1:1", "http://127.0.0.1"] {
            get(&format!("Host: {host}\r\nOrigin: {origin}\r\n")).expect_problem(403, "FOREIGN_ORIGIN");
        }
    }
}
