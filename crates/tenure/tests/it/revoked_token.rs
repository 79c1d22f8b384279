//! A server that is killed while it ends what belongs to a token that was revoked.

use serde_json::{Value, json};
use tenure_testkit::{ServerProcess, TestClient, serve_command, tenure_command};

use crate::fault_injection::Tracer;

/// So long that no mark of the time is written while this runs.
const TTL_MS: u64 = 86_400_000;

#[test]
fn leases_of_a_revoked_token_end_after_a_crash_during_the_revocation() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let served = ServerProcess::start(&mut serve_command(folder.path()));
    let mut admin = served.client();
    let kept = admin.acquire("db:kept", TTL_MS, None).unwrap().held_lease();
    let request = json!({"name": "ci", "scopes": ["leases:read", "leases:write"]}).to_string();
    let made = admin.request("POST /v1/tokens", None, &request).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (id, secret) = (text(&made.body["token"]["id"]), text(&made.body["secret"]));
    let mut ci = TestClient::with_token(&served.address, &secret).unwrap();
    let body = |number: u32| json!({"resource": format!("db:{number}"), "holder": "ci", "ttlMs": TTL_MS});
    let acquire =
        |number: u32| ci.request("POST /v1/leases", None, &body(number).to_string()).unwrap().held_lease();
    let theirs: Vec<_> = (0..3).map(acquire).collect();

    // The file with the tokens is another thread's: that the token is revoked is written, that its leases end is not.
    let tracer = Tracer::attach_to_writer(&served, "pwrite64:signal=KILL:when=1");
    assert!(admin.request(&format!("DELETE /v1/tokens/{id}"), None, "").is_err(), "nobody is left to answer");
    assert_eq!(served.wait_for_exit().0, None, "it was killed");
    drop(tracer);

    let served = ServerProcess::start(&mut serve_command(folder.path()));
    let mut admin = served.client();
    for lease in &theirs {
        let shown = admin.show(&lease.id).unwrap();
        assert_eq!(shown.body["lease"]["end"], "REVOKED", "{shown:?}");
    }
    assert_eq!(admin.show(&kept.id).unwrap().lease_state(), "ACTIVE", "the others' are as they were");
    let mut ci = TestClient::with_token(&served.address, &secret).unwrap();
    assert_eq!(ci.show(&kept.id).unwrap().status_and_code(), (401, "UNAUTHORIZED"));
    assert_eq!(admin.request("GET /v1/tokens", None, "").unwrap().body["tokens"], json!([]));
    assert_eq!(
        admin.request("POST /v1/tokens", None, &request).unwrap().status,
        201,
        "its name is free again"
    );
    let tokens = std::fs::read_to_string(data.join("api.tokens")).unwrap();
    assert!(!tokens.contains("revoked"), "what is done is forgotten: {tokens}");
    served.signal("TERM");
    served.wait_for_exit();
    let log = tenure_command(folder.path()).args(["log", "--data"]).arg(&data).output().unwrap();
    let log = String::from_utf8(log.stdout).unwrap();
    assert_eq!(log.matches("the token ci was revoked before the server started again").count(), 3, "{log}");
}
