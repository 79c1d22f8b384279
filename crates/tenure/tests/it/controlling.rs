//! `tenure control`, against a server that plays its part.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::Output;
use std::thread::JoinHandle;

use serde_json::{Value, json};

use crate::program::tenure;

/// A server that answers one request with this. It ends with the lines of that request.
fn play(status: &'static str, body: &Value) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let body = body.to_string();
    let playing = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
        let request: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).unwrap();
        request
    });
    (url, playing)
}

/// `tenure control ARGUMENTS…`, with this server.
fn control(arguments: &[&str], url: &str) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = tenure(folder.path());
    command.arg("control").args(arguments).env("TENURE_URL", url).env("TENURE_TOKEN", "tnr_played");
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn answered(data: &Value) -> Value {
    json!({ "success": true, "data": data, "timestamp": 1_208_600, "version": "2.0" })
}

// S0-23, S0-54, S0-62
#[test]
fn status_says_who_has_the_device_and_for_how_long() {
    let data = json!({
        "active": true, "leaseId": "cl_9f4a2137c1d6", "scope": "global", "ownerClientName": "K1 Composer",
        "ownerInstanceId": "6f0d84a3-8f49-4da8-8c70-0b8f6db5a870", "ownerWsClientId": 12, "remainingMs": 2140,
        "ttlMs": 5000, "heartbeatIntervalMs": 1000, "takeoverAllowed": false,
    });
    let (url, playing) = play("200 OK", &answered(&data));
    let (code, output, errors) = control(&["status"], &url);
    assert_eq!(code, Some(0), "{errors}");
    assert!(output.contains("K1 Composer") && output.contains("2s, unless a heartbeat comes"), "{output}");
    let request = playing.join().unwrap();
    assert_eq!(request[0], "GET /api/v1/control/status HTTP/1.1");
    assert!(request.iter().any(|line| line.eq_ignore_ascii_case("authorization: Bearer tnr_played")));

    let (url, playing) = play("200 OK", &answered(&data));
    let (_, output, _) = control(&["status", "--json"], &url);
    assert_eq!(serde_json::from_str::<Value>(&output).unwrap(), data);
    playing.join().unwrap();
}

#[test]
fn status_says_that_nobody_has_it_and_why_it_is_not_told() {
    let (url, playing) = play("200 OK", &answered(&json!({ "active": false, "scope": "global" })));
    let (code, output, _) = control(&["status"], &url);
    assert_eq!((code, output.lines().count()), (Some(0), 1));
    assert!(output.starts_with("Nobody has the control lease"), "{output}");
    playing.join().unwrap();

    let refusal = json!({
        "success": false, "error": { "code": "UNAUTHORIZED", "message": "the token is not known" },
        "timestamp": 1, "version": "2.0",
    });
    let (url, playing) = play("401 Unauthorized", &refusal);
    let (code, output, errors) = control(&["status"], &url);
    assert_eq!((code, output.as_str()), (Some(77), ""));
    assert!(
        errors.contains("the token is not known (UNAUTHORIZED)") && errors.contains("TENURE_TOKEN"),
        "{errors}"
    );
    playing.join().unwrap();
}

#[test]
fn the_matrix_needs_no_server_and_is_plain_where_no_terminal_shows_it() {
    let (code, output, errors) = control(&["matrix"], "http://127.0.0.1:1");
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert!(output.starts_with("SOURCE") && !output.contains('\x1b'), "{output}");
    assert!(output.contains("\n\nCOMMAND") && output.contains("POST /api/v1/effects/set"), "{output}");
    let (_, output, _) = control(&["matrix", "--json"], "http://127.0.0.1:1");
    let matrix: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(matrix["matrix"].as_array().unwrap().len(), 16);
    let serial = matrix["matrix"].as_array().unwrap().iter();
    let mut serial = serial.filter(|row| row["source"] == "local.serial" && row["class"] == "mutates");
    let row = json!({
        "source": "local.serial", "class": "mutates", "inactive": "allow", "owner": "block", "nonOwner": "block",
    });
    assert_eq!(serial.next(), Some(&row));
    assert!(matrix["commands"].as_array().unwrap().iter().all(|command| command["summary"].is_string()));
}
