//! Who may speak to the device, and as whom.

use serde_json::{Value, json};
use tenure_testkit::control::ControlClient;
use tenure_testkit::{TestServer, json_string};

fn token(server: &TestServer, name: &str, scopes: &Value, resources: &Value) -> (String, String) {
    let body = json!({ "name": name, "scopes": scopes, "resources": resources });
    let made = server.post("/v1/tokens", &body).json();
    (json_string(&made["token"]["id"]), json_string(&made["secret"]))
}

#[test]
fn a_connection_without_a_valid_token_is_rejected() {
    let server = TestServer::start();
    assert!(ControlClient::try_open(&server, "wrong").is_err());
    assert_eq!(server.request("GET /api/v1/control/status", &[], "").status, 401);
    let (_, other) = token(&server, "intents", &json!(["v3:write"]), &json!([]));
    assert!(ControlClient::try_open(&server, &other).is_err());
    server.stop();
}

#[test]
fn a_token_without_control_write_may_only_read() {
    let server = TestServer::start();
    for (name, scopes, resources) in [
        ("reader", json!(["leases:read"]), json!([])),
        ("elsewhere", json!(["control:write"]), json!(["deploy:"])),
    ] {
        let (_, reader) = token(&server, name, &scopes, &resources);
        let mut client = ControlClient::open_with_token(&server, &reader);
        assert_eq!(client.status()["active"], json!(false));
        assert_eq!(client.try_acquire("Tablet")["error"]["code"], "FORBIDDEN");
        assert_eq!(client.request_error("transport.play", &json!({})), "FORBIDDEN");
        assert_eq!(client.request_error("ota.begin", &json!({})), "FORBIDDEN");
        client.send_bytes(&[0; 976]);
        assert_eq!(client.receive()["error"]["code"], "FORBIDDEN");
        assert_eq!(client.request("device.status", &json!({}))["success"], json!(true));
    }
    server.stop();
}

// S0-82
#[test]
fn login_and_logout_switch_the_caller_of_a_connection() {
    let server = TestServer::start();
    let (_, reader) = token(&server, "reader", &json!(["leases:read"]), &json!([]));
    let (_, controller_token) = token(&server, "driver", &json!(["control:write"]), &json!([]));
    let mut client = ControlClient::open_with_token(&server, &reader);
    let auth_status = |client: &mut ControlClient| client.request("auth.status", &json!({}))["data"].clone();
    assert_eq!(auth_status(&mut client)["mayControl"], json!(false));
    assert_eq!(client.request_error("auth.login", &json!({ "token": "wrong" })), "UNAUTHORIZED");
    assert_eq!(client.request_error("auth.login", &json!({})), "MISSING_FIELD");
    assert_eq!(
        client.request("auth.login", &json!({ "token": controller_token }))["data"]["mayControl"],
        json!(true)
    );
    let lease = client.acquire("Tablet");
    // Nor with less than what the lease needs.
    assert_eq!(client.request_error("auth.login", &json!({ "token": reader })), "CONFLICT");
    // A lease belongs to who got it: not to be taken along.
    assert_eq!(client.request_error("auth.logout", &json!({})), "CONFLICT");
    assert_eq!(client.heartbeat(&lease)["success"], json!(true));
    client.release(&lease);
    assert_eq!(client.request("auth.logout", &json!({}))["data"]["mayControl"], json!(false));
    assert_eq!(client.try_acquire("Tablet")["error"]["code"], "FORBIDDEN");
    server.stop();
}

#[test]
fn revoking_a_token_closes_its_connections_and_ends_their_lease() {
    let server = TestServer::start();
    let (id, secret) = token(&server, "driver", &json!(["control:write"]), &json!([]));
    let (mut client, mut other) =
        (ControlClient::open_with_token(&server, &secret), ControlClient::open(&server));
    client.acquire("Tablet");
    let delete = [server.bearer()];
    assert_eq!(server.request(&format!("DELETE /v1/tokens/{id}"), &delete, "").status, 200);
    other.next_state_change_to("released");
    client.wait_for_end();
    other.acquire("K1 Composer");
    server.stop();
}
