//! The lease in front of somebody else's device: a WLED, spoken to through the real server.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_control::gateway::Rules;
use tenure_server::{GatewaySettings, Patience};
use tenure_testkit::control::{Client, rest};
use tenure_testkit::wled::{Mood, Wled};
use tenure_testkit::{Response, TestServer, wait_until};
use tokio::runtime::Runtime;

/// A WLED, and a server in front of it.
struct Stage {
    server: TestServer,
    wled: Arc<Wled>,
    runtime: Runtime,
}

fn stage() -> Stage {
    let runtime = Runtime::new().unwrap();
    let wled = Arc::new(runtime.block_on(Wled::start()));
    let gateway = GatewaySettings {
        device: wled.url().parse().unwrap(),
        rules: Rules::wled(),
        patience: Patience::default(),
    };
    let server = TestServer::start_with(|settings| settings.control.gateway = Some(gateway));
    Stage { server, wled, runtime }
}

impl Stage {
    fn set(&self, token: Option<&str>, state: &Value) -> Response {
        rest(&self.server, "POST /json/state", token, None, state)
    }

    /// Waits until this is so on the device.
    fn until(&self, what: &str, is_so: impl Fn(&Wled) -> bool) {
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
    assert_eq!(stage.server.ask("GET /json/state", &[], "").status, 401);
    assert_eq!(stage.set(None, &json!({ "bri": 9 })).status, 200);
    assert_eq!(stage.wled.state("bri"), json!(9));
    // What is Tenure's own stays so.
    assert_eq!(stage.server.get("/v1/leases").status, 200);
    assert_eq!(stage.server.get("/api/v1/control/status").status, 200);
    for seen in stage.wled.seen() {
        let names: Vec<_> = seen.headers.iter().map(|(name, _)| name.to_lowercase()).collect();
        assert!(!names.contains(&"authorization".to_owned()), "{seen:?}");
    }
    stage.stop();
}

// S0-1, S0-73, S0-74
#[test]
fn under_a_lease_only_its_owner_may_change_the_device() {
    let stage = stage();
    let (mut owner, mut other) = (Client::open(&stage.server), Client::open(&stage.server));
    let lease = owner.acquire("K1 Composer");
    let refused = stage.set(None, &json!({ "bri": 1 }));
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (428, &json!("LEASE_REQUIRED")));
    // A GET that moves the device.
    assert_eq!(rest(&stage.server, "GET /win&A=3", None, None, &json!({})).status, 428);
    other.send_text(r#"{"bri":2}"#);
    let refused = other.receive_where(|message| message["type"] == "error");
    assert_eq!(refused["error"]["code"], "CONTROL_LOCKED");
    // S0-72: who names its message is told which one it was.
    assert_eq!(other.refused("anything", &json!({ "bri": 2 })), "CONTROL_LOCKED");
    assert!(stage.wled.obeyed().is_empty(), "{:?}", stage.wled.obeyed());
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
    let (mut owner, mut next) = (Client::open(&stage.server), Client::open(&stage.server));
    let lease = owner.acquire("K1 Composer");
    stage.wled.feel(Mood::StallsBeforeReading);
    let (server, token) = (&stage.server, lease.token.clone());
    std::thread::scope(|scope| {
        let late =
            scope.spawn(move || rest(server, "POST /json/state", Some(&token), None, &json!({ "bri": 1 })));
        stage.until("there", |wled| wled.seen().iter().any(|seen| seen.line.contains("/json/state")));
        owner.release(&lease);
        let lease = next.acquire("Tablet");
        stage.wled.feel(Mood::Obeys);
        let late = late.join().unwrap();
        assert_eq!((late.status, late.json()["success"].clone()), (409, json!(false)), "{late:?}");
        assert_eq!(stage.set(Some(&lease.token), &json!({ "bri": 5 })).status, 200);
    });
    assert_eq!(stage.wled.obeyed(), [r#"POST {"bri":5}"#]);
    stage.stop();
}

#[test]
fn an_unreachable_device_is_reported_as_unavailable() {
    let stage = stage();
    let mut owner = Client::open(&stage.server);
    stage.wled.feel(Mood::Obeys);
    let Stage { server, wled, runtime } = stage;
    drop(wled);
    runtime.shutdown_timeout(Duration::from_secs(5));
    let answer = server.get("/json/state");
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (503, &json!("UNAVAILABLE")), "{answer:?}");
    // The lease goes on: it is about who may, not about whether the device is there.
    owner.acquire("K1 Composer");
    server.stop();
}
