//! `tenure mcp --listen`: who gets in, and with whose rights.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;
use tenure_testkit::{TestHome, tenure_command};

use crate::mcp::client::{McpAgent, lifecycle_modes, start_listening};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

/// One request with these headers: the status, and everything that came.
fn post(address: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let mut request =
        format!("POST {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", LIST.len());
    request += "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("{request}\r\n{LIST}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

#[test]
fn foreign_hosts_and_origins_and_requests_without_a_token_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = tenure_command(folder.path());
    command.args(["mcp", "--listen", "127.0.0.1:0", "--host", "Tools.example"]);
    // Its own token is not for callers.
    command.env("TENURE_URL", "http://127.0.0.1:1").env("TENURE_TOKEN", "tnr_own");
    let (served, address) = start_listening(&mut command);
    let (host, token) = (("Host", address.as_str()), ("Authorization", "Bearer tnr_abc"));
    let port = address.rsplit(':').next().unwrap();
    let local = format!("localhost:{port}");
    let own = format!("http://{address}");
    for (status, path, headers) in [
        (200, "/mcp", &[host, token][..]),
        (200, "/mcp", &[("Host", local.as_str()), token]),
        (200, "/mcp", &[("Host", "tools.example"), token]),
        (200, "/mcp", &[host, token, ("Origin", own.as_str())]),
        (401, "/mcp", &[host]),
        (401, "/mcp", &[host, ("Authorization", "Basic abc")]),
        (404, "/", &[host, token]),
        (421, "/mcp", &[("Host", "evil.example"), token]),
        (421, "/mcp", &[("Host", "localhost.evil.example"), token]),
        (421, "/mcp", &[("Host", "127.0.0.1"), token]),
        (421, "/mcp", &[host, ("Host", "evil.example"), token]),
        (403, "/mcp", &[host, token, ("Origin", "http://evil.example")]),
        (403, "/mcp", &[host, token, ("Origin", "null")]),
    ] {
        let (answered, answer) = post(&address, path, headers);
        assert_eq!(answered, status, "{path} {headers:?}: {answer}");
        assert!(!answer.contains("tnr_abc"), "{answer}");
        let is_refused = status != 200;
        assert_eq!(is_refused, answer.contains("application/problem+json"), "{answer}");
    }
    let (_, answer) = post(&address, "/mcp", &[host]);
    assert!(answer.to_lowercase().contains("www-authenticate: bearer"), "{answer}");
    served.signal("TERM");
    assert_eq!(served.wait_for_exit(), (Some(0), String::new(), String::new()));
}

#[test]
fn each_http_request_has_the_rights_of_its_own_token() {
    let home = TestHome::new();
    let reads = home.run(&["token", "create", "reads", "--scope", "leases:read"]);
    let admin = std::fs::read_to_string(home.path("data/admin.token")).unwrap();
    let mut command = home.command(&["mcp", "--listen", "127.0.0.1:0"]);
    let (served, address) = start_listening(command.env_remove("TENURE_TOKEN"));
    let declaration = json!({"touch": [{"path": "src/lib.rs"}], "agent_id": "ann"});
    for begin in lifecycle_modes() {
        let ann = McpAgent::connect_http(&address, Some(admin.trim_end()), begin.clone());
        let required = &ann.tools()[0].input_schema["required"];
        assert_eq!(required, &json!(["touch", "agent_id"]), "nobody else says who asks");
        let granted = ann.call_successfully("declare", declaration.clone());
        assert_eq!(
            (granted.verdict(), &granted.data["leases"][0]["resource"]),
            ("GRANTED", &json!("FILE:src/lib.rs"))
        );

        let reader = McpAgent::connect_http(&address, Some(reads.output.trim_end()), begin.clone());
        assert_eq!(reader.call_successfully("who", json!({"path": "src/lib.rs"})).data["held"], true);
        let denied = reader.call_with_error("declare", json!({"touch": [{"path": "b"}], "agent_id": "bob"}));
        assert_eq!(denied.data["error"]["code"], "FORBIDDEN", "{denied:?}");

        let stranger = McpAgent::connect_http(&address, Some("tnr_nobody"), begin.clone());
        let denied = stranger.call_with_error("who", json!({"path": "a"}));
        assert_eq!(denied.data["error"]["code"], "UNAUTHORIZED", "{denied:?}");
        assert!(!denied.text.contains("tnr_nobody"), "{denied:?}");

        let missing = ann.call_with_error("status", json!({}));
        assert!(missing.text.contains("`agent_id` is missing"), "{missing:?}");
        // Another connection of the same agent knows all that there is to know.
        let again = McpAgent::connect_http(&address, Some(admin.trim_end()), begin);
        assert_eq!(
            again.call_successfully("release", json!({"agent_id": "ann"})).data["released"],
            json!(granted.leases())
        );
    }
    served.stop();
}

#[test]
fn anonymous_access_to_a_local_socket_requires_the_flag() {
    let home = TestHome::new();
    let mut command = home.command(&["mcp", "--listen", "127.0.0.1:0", "--agent", "ann", "--without-token"]);
    let (_served, address) = start_listening(command.env_remove("TENURE_URL").env_remove("TENURE_TOKEN"));
    let [_, begin] = lifecycle_modes();
    let ann = McpAgent::connect_http(&address, None, begin);
    assert_eq!(ann.call_successfully("declare", json!({"touch": [{"path": "a"}]})).verdict(), "GRANTED");
}
