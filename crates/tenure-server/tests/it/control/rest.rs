//! REST beside the lease.

use serde_json::{Value, json};
use tenure_testkit::control::{ControlClient, run_on_each_clock};

// S0-62
#[test]
fn rest_status_reports_the_owner_of_the_lease() {
    run_on_each_clock(|server| {
        let idle = server.get("/api/v1/control/status");
        assert_eq!((idle.status, &idle.json()["data"]["active"]), (200, &json!(false)));
        let mut owner = ControlClient::open(server);
        let lease = owner.acquire("K1 Composer");
        let held = server.get("/api/v1/control/status").json();
        assert_eq!(held["success"], json!(true));
        assert_eq!(held["data"]["leaseId"], json!(lease.id));
        assert_eq!(held["data"]["ownerClientName"], "K1 Composer");
        assert!(held["data"]["remainingMs"].as_u64().unwrap() <= 5_000);
        assert!(held["data"].get("leaseToken").is_none());
    });
}

#[test]
fn x_api_key_is_accepted_as_token_header() {
    let server = tenure_testkit::TestServer::start();
    let key =
        |key: &str| server.request("GET /api/v1/control/status", &[format!("X-API-Key: {key}")], "").status;
    assert_eq!((key(&server.token), key("wrong")), (200, 401));
    let both = [format!("X-API-Key: {}", server.token), "Authorization: Bearer wrong".to_owned()];
    assert_eq!(server.request("GET /api/v1/control/status", &both, "").status, 401);
    server.stop();
}

/// A right to upload one image is enough to upload one image, and for nothing else.
#[test]
fn an_ota_token_is_valid_for_one_upload() {
    let server = tenure_testkit::TestServer::start();
    let reader = server.post("/v1/tokens", &json!({ "name": "robot", "scopes": ["leases:read"] })).json();
    let bearer = format!("Authorization: Bearer {}", reader["secret"].as_str().unwrap());
    let upload = |right: Option<&str>| {
        let mut headers = vec![bearer.clone(), "Content-Type: application/octet-stream".to_owned()];
        headers.extend(right.map(|right| format!("X-OTA-Token: {right}")));
        let answer = server.request("POST /update", &headers, "no image");
        (answer.status, answer.json()["error"]["code"].as_str().unwrap().to_owned())
    };
    assert_eq!(upload(None), (403, "FORBIDDEN".to_owned()));
    let right = server.post("/api/v1/device/ota-token", &json!({})).json()["data"]["token"].clone();
    assert_eq!(server.get("/api/v1/device/ota-token").json()["data"]["active"], json!(true));
    assert_eq!(upload(right.as_str()), (400, "FIRMWARE_INVALID".to_owned()));
    assert_eq!(upload(right.as_str()), (403, "FORBIDDEN".to_owned()));
    server.stop();
}

// X2
#[test]
fn a_body_of_a_command_without_fields_must_be_an_empty_object() {
    let server = tenure_testkit::TestServer::start();
    for path in [
        "POST /api/v1/device/ota-token",
        "GET /api/v1/device/ota-token",
        "POST /api/v1/firmware/abort",
        "POST /api/v1/transport/play",
        "GET /api/v1/control/status",
        "GET /api/v1/auth/status",
        "GET /api/v1/device/info",
    ] {
        let headers = [server.bearer(), "Content-Type: application/json".to_owned()];
        let send = |body| server.request(path, &headers, body);
        for (body, code) in
            [("[null,null]", "INVALID_JSON"), ("not json", "INVALID_JSON"), (r#"{"zzz":1}"#, "UNKNOWN_FIELD")]
        {
            let response = send(body);
            assert_eq!(
                (response.status, &response.json()["error"]["code"]),
                (400, &json!(code)),
                "{path} {body}"
            );
        }
        for body in ["", "{}"] {
            assert_eq!(send(body).json()["error"]["code"], Value::Null, "{path} {body}");
        }
    }
    assert_eq!(server.request("POST /api/v1/device/ota-token", &[server.bearer()], "").status, 200);
    server.stop();
}

/// An address that cannot be read is wrong as any other field is.
#[test]
fn an_invalid_path_parameter_is_reported_in_the_device_format() {
    let server = tenure_testkit::TestServer::start();
    let answer = server.get("/api/v1/presets/%ff");
    assert_eq!((answer.status, &answer.json()["success"]), (400, &json!(false)), "{answer:?}");
    assert_eq!(answer.json()["error"]["code"], "INVALID_VALUE");
    server.stop();
}
