//! No secret is in anything that the program prints, answers or stores, whatever is asked of it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_testkit::leak_recorder::{SECRET_FILES, files_below, remove_secrets};
use tenure_testkit::{LIMIT, ServerProcess, serve_command, tenure_command};

use crate::secret_scan::SecretScan;

/// Everything that was seen, and every secret that must not be in it.
struct SecretScanFixture {
    served: ServerProcess,
    admin: String,
    secrets: Vec<String>,
    seen: Vec<(String, Vec<u8>)>,
}

impl SecretScanFixture {
    /// Sends a request as it is: what comes back is seen, but for what is given to this caller alone.
    fn send(&mut self, what: &str, request: &str) -> Value {
        let mut stream = TcpStream::connect(&self.served.address).unwrap();
        let is_endless = what.starts_with("GET /v1/events");
        let limit = if is_endless { Duration::from_millis(300) } else { LIMIT };
        stream.set_read_timeout(Some(limit)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // A stream of events does not end: what came until now is enough.
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let json: Value = serde_json::from_str(body).unwrap_or_default();
        let mut public = json.clone();
        if head.starts_with("HTTP/1.1 2") && !json.is_null() {
            remove_secrets(&mut public, &mut |secret| self.secrets.push(secret.to_owned()));
            self.see(what, format!("{head}\r\n\r\n{public}").into_bytes());
        } else {
            self.see(what, answer);
        }
        json
    }

    fn ask(&mut self, line: &str, bearer: &str, headers: &str, body: &str) -> Value {
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {bearer}\r\nContent-Type: application/json\r\n{headers}\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.served.address,
            body.len()
        );
        self.send(line.split('?').next().unwrap_or(line), &request)
    }

    fn as_admin(&mut self, line: &str, body: &Value) -> Value {
        let admin = self.admin.clone();
        self.ask(line, &admin, "", &body.to_string())
    }

    fn see(&mut self, what: &str, bytes: impl Into<Vec<u8>>) {
        self.seen.push((what.to_owned(), bytes.into()));
    }
}

fn start(folder: &Path) -> SecretScanFixture {
    let served = ServerProcess::start(&mut serve_command(folder));
    let admin = std::fs::read_to_string(folder.join("data/admin.token")).unwrap().trim_end().to_owned();
    let key = std::fs::read_to_string(folder.join("data/token.key")).unwrap().trim_end().to_owned();
    SecretScanFixture { served, secrets: vec![admin.clone(), key], admin, seen: Vec::new() }
}

/// Gets every kind of secret that there is: the tokens of leases, and API tokens.
fn get_secrets(watched: &mut SecretScanFixture) -> (String, String) {
    let lease_request = |resource: &str| json!({ "resource": resource, "holder": "a", "ttlMs": 600_000 });
    let lease = watched.as_admin("POST /v1/leases", &lease_request("db:1"));
    watched.as_admin(
        "POST /v1/leases/batch",
        &json!({ "leases": [lease_request("db:2"), lease_request("db:3")] }),
    );
    let (id, token) = (lease["lease"]["id"].as_str().unwrap(), lease["token"].as_str().unwrap().to_owned());
    let moved =
        watched.as_admin(&format!("POST /v1/leases/{id}/transfer"), &json!({ "token": token, "to": "b" }));
    let id = moved["lease"]["id"].as_str().unwrap().to_owned();
    for (name, scope) in [("reader", "leases:read"), ("writer", "leases:write"), ("second", "admin")] {
        let made = watched.as_admin("POST /v1/tokens", &json!({ "name": name, "scopes": [scope] }));
        assert!(made["secret"].is_string(), "{name}");
    }
    let gone = watched.as_admin("POST /v1/tokens", &json!({ "name": "gone", "scopes": ["admin"] }));
    let gone_id = gone["token"]["id"].as_str().unwrap();
    watched.as_admin(&format!("DELETE /v1/tokens/{gone_id}"), &Value::Null);
    (id, moved["token"].as_str().unwrap().to_owned())
}

/// Puts `secret` everywhere where it does not belong and is refused.
fn misuse(watched: &mut SecretScanFixture, id: &str, secret: &str) {
    let posts = ["renew", "release", "transfer", "upgrade", "downgrade", "revoke"];
    let paths = posts.map(|verb| format!("/v1/leases/{id}/{verb}")).to_vec();
    let more = ["/v1/leases", "/v1/leases/batch", "/v1/tokens"].map(str::to_owned).to_vec();
    let names = [
        "token",
        "ttlMs",
        "mode",
        "reason",
        "to",
        "waitMs",
        "labels",
        "leases",
        "scopes",
        "expiresInMs",
        secret,
    ];
    for path in [paths, more].concat() {
        for name in names {
            for value in [json!(secret), json!([secret]), json!({ secret: secret })] {
                watched.as_admin(&format!("POST {path}"), &json!({ name: value }));
            }
        }
        let admin = watched.admin.clone();
        for body in [
            secret.to_owned(),
            format!("\"{secret}"),
            format!("{{\"token\": {secret}"),
            format!("[\"{secret}\"]"),
        ] {
            watched.ask(&format!("POST {path}"), &admin, "", &body);
            watched.ask(&format!("POST {path}"), &admin, "Content-Encoding: gzip\r\n", &body);
        }
        watched.ask(&format!("POST {path}"), secret, "", "{}");
    }
    let admin = watched.admin.clone();
    for path in ["leases", "queue", "explain", "events"] {
        for name in ["resource", "holder", "state", "limit", "after", "from", "type", secret] {
            // A resource is a name, and whoever asks about one is told about it by that name.
            if name != "resource" {
                watched.ask(&format!("GET /v1/{path}?{name}={secret}"), &admin, "", "");
            }
        }
    }
    for line in [
        format!("GET /{secret}"),
        format!("GET /v1/leases/{secret}"),
        format!("POST /v1/leases/{secret}/renew"),
        format!("DELETE /v1/tokens/{secret}"),
        format!("{secret} /v1/leases"),
    ] {
        watched.ask(&line, &admin, "", "{}");
        watched.ask(&line, secret, "", "{}");
    }
    for header in ["Idempotency-Key", "Origin", "Last-Event-ID", "Content-Type", "Authorization", secret] {
        watched.ask("POST /v1/leases", &admin, &format!("{header}: {secret}\r\n"), "{}");
        watched.ask("GET /v1/events?from=now", &admin, &format!("{header}: {secret}\r\n"), "");
    }
    for request in [
        format!("{secret}\r\n\r\n"),
        format!("GET /v1/leases HTTP/1.1\r\nConnection: close\r\nHost: {secret}\r\n\r\n"),
        format!(
            "GET /v1/leases HTTP/1.1\r\nConnection: close\r\nHost: x\r\nAuthorization: Basic {secret}\r\n\r\n"
        ),
        format!("GET /v1/leases HTTP/1.1\r\nConnection: close\r\n{secret}\r\n\r\n"),
    ] {
        watched.send("not a request", &request);
    }
}

#[test]
fn no_secret_is_in_anything_that_is_printed_answered_or_stored() {
    let folder = tempfile::tempdir().unwrap();
    let mut watched = start(folder.path());
    let (id, token) = get_secrets(&mut watched);
    let api_token = watched.secrets.iter().rev().find(|secret| secret.starts_with("tnr_")).unwrap().clone();
    for secret in [token, api_token, watched.admin.clone()] {
        misuse(&mut watched, &id, &secret);
    }
    let lines = [
        "leases",
        "leases?state=RELEASED",
        "tokens",
        "queue?resource=db:1",
        "explain?resource=db:1",
        "events?from=0",
    ];
    for line in lines {
        watched.as_admin(&format!("GET /v1/{line}"), &Value::Null);
    }
    for path in ["/metrics", "/openapi.json", "/healthz"] {
        watched.as_admin(&format!("GET {path}"), &Value::Null);
    }
    let SecretScanFixture { served, secrets, mut seen, .. } = watched;
    served.signal("TERM");
    let (code, output, errors) = served.wait_for_exit();
    assert_eq!(code, Some(0), "{errors}");
    seen.extend([
        ("standard output".to_owned(), output.into()),
        ("standard error".to_owned(), errors.into()),
    ]);
    for command in [&["log", "--json"][..], &["log"], &["verify"], &["replay", "--at", "now"]] {
        let output = tenure_command(folder.path())
            .args(command)
            .arg("--data")
            .arg(folder.path().join("data"))
            .output()
            .unwrap();
        seen.push((command.join(" "), [output.stdout, output.stderr].concat()));
    }
    let is_secret =
        |path: &Path| path.file_name().is_some_and(|name| SECRET_FILES.iter().any(|secret| name == *secret));
    for (path, content) in files_below(folder.path()) {
        if !is_secret(&path) {
            seen.push((path.display().to_string(), content));
        }
    }
    let mut scan = SecretScan::default();
    secrets.iter().for_each(|secret| scan.add(secret));
    assert!(scan.len() >= 10, "{}", scan.len());
    assert!(seen.iter().any(|(what, bytes)| what == "GET /v1/events"
        && bytes.windows(6).any(|part| part == b"event:" || part == b"data: ")));
    let found: Vec<_> = seen
        .iter()
        .flat_map(|(what, bytes)| scan.find_in(bytes).into_iter().map(move |found| (what, found)))
        .collect();
    assert!(found.is_empty(), "{found:?}");
}
