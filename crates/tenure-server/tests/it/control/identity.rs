//! Who may speak to the device, and as whom.

use serde_json::{Value, json};
use tenure_testkit::control::Client;
use tenure_testkit::{TestServer, text};

fn token(server: &TestServer, name: &str, scopes: &Value, resources: &Value) -> (String, String) {
    let body = json!({ "name": name, "scopes": scopes, "resources": resources });
    let made = server.post("/v1/tokens", &body).json();
    (text(&made["token"]["id"]), text(&made["secret"]))
}

#[test]
fn a_connection_without_a_valid_token_is_rejected() {
    let server = TestServer::start();
    assert!(Client::try_open(&server, "wrong").is_err());
    assert_eq!(server.ask("GET /api/v1/control/status", &[], "").status, 401);
    let (_, other) = token(&server, "intents", &json!(["v3:write"]), &json!([]));
    assert!(Client::try_open(&server, &other).is_err());
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
        let mut client = Client::open_as(&server, &reader);
        assert_eq!(client.status()["active"], json!(false));
        assert_eq!(client.try_acquire("Tablet")["error"]["code"], "FORBIDDEN");
        assert_eq!(client.refused("transport.play", &json!({})), "FORBIDDEN");
        assert_eq!(client.refused("ota.begin", &json!({})), "FORBIDDEN");
        client.send_bytes(&[0; 976]);
        assert_eq!(client.receive()["error"]["code"], "FORBIDDEN");
        assert_eq!(client.ask("device.status", &json!({}))["success"], json!(true));
    }
    server.stop();
}

// S0-82
#[test]
fn login_and_logout_switch_the_caller_of_a_connection() {
    let server = TestServer::start();
    let (_, reader) = token(&server, "reader", &json!(["leases:read"]), &json!([]));
    let (_, driver) = token(&server, "driver", &json!(["control:write"]), &json!([]));
    let mut client = Client::open_as(&server, &reader);
    let who = |client: &mut Client| client.ask("auth.status", &json!({}))["data"].clone();
    assert_eq!(who(&mut client)["mayControl"], json!(false));
    assert_eq!(client.refused("auth.login", &json!({ "token": "wrong" })), "UNAUTHORIZED");
    assert_eq!(client.refused("auth.login", &json!({})), "MISSING_FIELD");
    assert_eq!(client.ask("auth.login", &json!({ "token": driver }))["data"]["mayControl"], json!(true));
    let lease = client.acquire("Tablet");
    // Nor with less than what the lease needs.
    assert_eq!(client.refused("auth.login", &json!({ "token": reader })), "CONFLICT");
    // A lease belongs to who got it: not to be taken along.
    assert_eq!(client.refused("auth.logout", &json!({})), "CONFLICT");
    assert_eq!(client.heartbeat(&lease)["success"], json!(true));
    client.release(&lease);
    assert_eq!(client.ask("auth.logout", &json!({}))["data"]["mayControl"], json!(false));
    assert_eq!(client.try_acquire("Tablet")["error"]["code"], "FORBIDDEN");
    server.stop();
}

#[test]
fn revoking_a_token_closes_its_connections_and_ends_their_lease() {
    let server = TestServer::start();
    let (id, driver) = token(&server, "driver", &json!(["control:write"]), &json!([]));
    let (mut client, mut other) = (Client::open_as(&server, &driver), Client::open(&server));
    client.acquire("Tablet");
    let delete = [server.bearer()];
    assert_eq!(server.ask(&format!("DELETE /v1/tokens/{id}"), &delete, "").status, 200);
    other.change_to("released");
    client.wait_for_end();
    other.acquire("K1 Composer");
    server.stop();
}
