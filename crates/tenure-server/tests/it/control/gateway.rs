//! The lease in front of somebody else's device: a WLED, spoken to through the real server.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_gateway::device_rules::Rules;
use tenure_gateway::{GatewaySettings, GatewayTimeouts};
use tenure_testkit::control::{ControlClient, send_rest_request};
use tenure_testkit::wled::{FakeWled, StallMode};
use tenure_testkit::{Response, TestServer, wait_until};
use tokio::runtime::Runtime;

/// A WLED, and a server in front of it.
struct Stage {
    server: TestServer,
    wled: Arc<FakeWled>,
    runtime: Runtime,
}

fn stage() -> Stage {
    let runtime = Runtime::new().unwrap();
    let wled = Arc::new(runtime.block_on(FakeWled::start()));
    let gateway = GatewaySettings {
        device: wled.url().parse().unwrap(),
        rules: Rules::wled(),
        timeouts: GatewayTimeouts::default(),
    };
    let server = TestServer::start_with(|settings| settings.control.gateway = Some(gateway));
    Stage { server, wled, runtime }
}

impl Stage {
    fn set(&self, token: Option<&str>, state: &Value) -> Response {
        send_rest_request(&self.server, "POST /json/state", token, None, state)
    }

    /// Waits until this is so on the device.
    fn until(&self, what: &str, is_so: impl Fn(&FakeWled) -> bool) {
        wait_until(what, || is_so(&self.wled));
    }

    fn stop(self) {
        self.server.stop();
        drop(self.wled);
        self.runtime.shutdown_background();
    }
}

#[test]
fn the_device_is_reachable_at_its_own_paths_by_authorized_callers() {
    let stage = stage();
    let state = stage.server.get("/json/state");
    assert_eq!((state.status, &state.json()["bri"]), (200, &json!(127)));
    // Whose addresses are in no table is asked who it is all the same.
    assert_eq!(stage.server.request("GET /json/state", &[], "").status, 401);
    assert_eq!(stage.set(None, &json!({ "bri": 9 })).status, 200);
    assert_eq!(stage.wled.state("bri"), json!(9));
    // What is Tenure's own stays so.
    assert_eq!(stage.server.get("/v1/leases").status, 200);
    assert_eq!(stage.server.get("/api/v1/control/status").status, 200);
    for seen in stage.wled.received_requests() {
        let names: Vec<_> = seen.headers.iter().map(|(name, _)| name.to_lowercase()).collect();
        assert!(!names.contains(&"authorization".to_owned()), "{seen:?}");
    }
    stage.stop();
}

// S0-1, S0-73, S0-74
#[test]
fn under_a_lease_only_its_owner_may_change_the_device() {
    let stage = stage();
    let (mut owner, mut other) = (ControlClient::open(&stage.server), ControlClient::open(&stage.server));
    let lease = owner.acquire("K1 Composer");
    let refused = stage.set(None, &json!({ "bri": 1 }));
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (428, &json!("LEASE_REQUIRED")));
    // A GET that moves the device.
    assert_eq!(send_rest_request(&stage.server, "GET /win&A=3", None, None, &json!({})).status, 428);
    other.send_text(r#"{"bri":2}"#);
    let refused = other.receive_where(|message| message["type"] == "error");
    assert_eq!(refused["error"]["code"], "CONTROL_LOCKED");
    // S0-72: who names its message is told which one it was.
    assert_eq!(other.request_error("anything", &json!({ "bri": 2 })), "CONTROL_LOCKED");
    assert!(stage.wled.applied_commands().is_empty(), "{:?}", stage.wled.applied_commands());
    assert_eq!(stage.set(Some(&lease.token), &json!({ "bri": 3 })).status, 200);
    owner.send_text(r#"{"bri":4}"#);
    stage.until("obeyed", |wled| wled.state("bri") == json!(4));
    // Others may look, and are told what the device says.
    other.send_text(r#"{"v":true}"#);
    other.receive_where(|message| message["state"]["bri"] == json!(4));
    stage.stop();
}

/// What is on its way when the lease changes hands is cut off before the next owner is told that it is the owner.
#[test]
fn no_command_of_the_previous_owner_arrives_after_the_next_acquired() {
    let stage = stage();
    let (mut owner, mut next) = (ControlClient::open(&stage.server), ControlClient::open(&stage.server));
    let lease = owner.acquire("K1 Composer");
    stage.wled.set_stall_mode(StallMode::BeforeReading);
    let (server, token) = (&stage.server, lease.token.clone());
    std::thread::scope(|scope| {
        let late = scope.spawn(move || {
            send_rest_request(server, "POST /json/state", Some(&token), None, &json!({ "bri": 1 }))
        });
        stage.until("there", |wled| {
            wled.received_requests().iter().any(|seen| seen.line.contains("/json/state"))
        });
        owner.release(&lease);
        let lease = next.acquire("Tablet");
        stage.wled.set_stall_mode(StallMode::None);
        let late = late.join().unwrap();
        assert_eq!((late.status, late.json()["success"].clone()), (409, json!(false)), "{late:?}");
        assert_eq!(stage.set(Some(&lease.token), &json!({ "bri": 5 })).status, 200);
    });
    assert_eq!(stage.wled.applied_commands(), [r#"POST {"bri":5}"#]);
    stage.stop();
}

#[test]
fn an_unreachable_device_is_reported_as_unavailable() {
    let stage = stage();
    let mut owner = ControlClient::open(&stage.server);
    stage.wled.set_stall_mode(StallMode::None);
    let Stage { server, wled, runtime } = stage;
    drop(wled);
    runtime.shutdown_timeout(Duration::from_secs(5));
    let answer = server.get("/json/state");
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (503, &json!("UNAVAILABLE")), "{answer:?}");
    // The lease goes on: it is about who may, not about whether the device is there.
    owner.acquire("K1 Composer");
    server.stop();
}
