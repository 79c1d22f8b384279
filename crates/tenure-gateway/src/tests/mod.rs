//! The gateway in front of a scripted WLED on a real port.

mod disconnects;
mod end_to_end;
mod http;
mod owner_changes;
mod websockets;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tenure_control::CommandError;
use tenure_control::ownership::{ControlLease, ControlOwner, OwnershipState, Permit, TokenDigest};
use tenure_control::permission_matrix::CommandClass;
use tenure_control::rejection::ControlRejection;
use tenure_core::kernel::{Fence, Tick, TickDuration};
use tenure_testkit::wled::{FakeWled, StallMode};
use tokio::sync::watch;
use tokio::time::timeout;

use super::{Gateway, GatewaySettings, GatewayTimeouts, OwnershipSource};
use crate::device_rules::Rules;

/// A source of the control lease, with the real ownership rules.
struct FakeOwnershipSource {
    ownership: Mutex<(OwnershipState, u64)>,
    changes: watch::Sender<u64>,
    now: AtomicU64,
    /// Whether somebody asked whose hand it is and kept the next change from being told meanwhile.
    was_blocked: AtomicBool,
}

impl FakeOwnershipSource {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            ownership: Mutex::default(),
            changes: watch::Sender::new(0),
            now: AtomicU64::new(0),
            was_blocked: AtomicBool::new(false),
        })
    }

    /// Somebody else has the lease now, or somebody at all. The answer is the generation that began.
    fn grant_to(&self, identity: &str) -> u64 {
        let mut ownership = self.ownership.lock();
        ownership.1 += 1;
        let fence = Fence(ownership.1);
        if let Some(fence) = ownership.0.lease().map(|held| held.fence) {
            ownership.0.end_lease(fence);
        }
        let owner = ControlOwner {
            identity: identity.into(),
            websocket_client_id: 1,
            client_name: identity.into(),
            instance_id: "".into(),
            token_digest: TokenDigest::of(&format!("{identity}-token")),
        };
        let (acquired_at, ttl) = (self.now(), TickDuration::from_secs(5));
        ownership.0.begin_lease(ControlLease {
            fence,
            lease_id: "cl_1".into(),
            owner,
            acquired_at,
            expires_at: Tick(acquired_at.0 + ttl.0),
            ttl,
        });
        self.publish(&ownership.0)
    }

    fn take_back(&self) -> u64 {
        let mut ownership = self.ownership.lock();
        let fence = ownership.0.lease().unwrap().fence;
        ownership.0.end_lease(fence);
        self.publish(&ownership.0)
    }

    fn now(&self) -> Tick {
        Tick(self.now.load(Ordering::Acquire))
    }

    fn publish(&self, ownership: &OwnershipState) -> u64 {
        self.changes.send_replace(ownership.epoch());
        ownership.epoch()
    }

    fn pass_rest(&self, owner: Option<&str>, class: CommandClass) -> Result<Permit, ControlRejection> {
        let token = owner.map(|owner| format!("{owner}-token"));
        self.ownership.lock().0.permit_rest(token.as_deref(), None, class, self.now())
    }

    fn pass_websocket(&self, identity: &str, class: CommandClass) -> Result<Permit, ControlRejection> {
        self.ownership.lock().0.permit_websocket(identity, class, self.now())
    }
}

impl OwnershipSource for FakeOwnershipSource {
    fn check_permit(&self, pass: Permit) -> Result<(), ControlRejection> {
        self.ownership.lock().0.check_permit(pass, self.now())
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn is_owner(&self, identity: &str) -> bool {
        // The thread that announces a change holds the lock that the real controller needs here: both would deadlock.
        let (changes, (sender, received)) = (self.changes.clone(), std::sync::mpsc::channel());
        std::thread::spawn(move || sender.send(changes.send_if_modified(|_| false)));
        if received.recv_timeout(Duration::from_secs(3)).is_err() {
            self.was_blocked.store(true, Ordering::Release);
        }
        self.ownership.lock().0.lease().is_some_and(|held| &*held.owner.identity == identity)
    }

    fn websocket_error(&self, request_id: Option<&str>, blocked: &CommandError) -> String {
        json!({ "type": "error", "requestId": request_id, "error": error_json(blocked) }).to_string()
    }
}

struct GatewayFixture {
    wled: FakeWled,
    ownership_source: Arc<FakeOwnershipSource>,
    gateway: Arc<Gateway>,
}

async fn stage() -> GatewayFixture {
    stage_with(|_| {}).await
}

async fn stage_with(change: impl FnOnce(&mut GatewaySettings)) -> GatewayFixture {
    stage_before(FakeWled::start().await, change)
}

fn stage_before(wled: FakeWled, change: impl FnOnce(&mut GatewaySettings)) -> GatewayFixture {
    let mut settings = settings(&wled.url());
    change(&mut settings);
    let ownership_source = FakeOwnershipSource::new();
    let gateway = Arc::new(Gateway::new(settings, ownership_source.clone()));
    GatewayFixture { wled, ownership_source, gateway }
}

fn settings(url: &str) -> GatewaySettings {
    // What is cut because hands change is not to be taken for what is cut because nobody waits any longer.
    let first_byte = Duration::from_secs(60);
    let patience =
        GatewayTimeouts { first_byte, reopen: Duration::from_millis(20), ..GatewayTimeouts::default() };
    GatewaySettings { device: url.parse().unwrap(), rules: Rules::wled(), timeouts: patience }
}

impl GatewayFixture {
    /// Asks as a route would: class, pass, forward.
    async fn ask(&self, owner: Option<&str>, request: Request) -> Response {
        ask(self.gateway.clone(), self.ownership_source.clone(), owner, request).await
    }

    fn asking(&self, owner: Option<&'static str>, request: Request) -> tokio::task::JoinHandle<Response> {
        tokio::spawn(ask(self.gateway.clone(), self.ownership_source.clone(), owner, request))
    }
}

async fn ask(
    gateway: Arc<Gateway>,
    ownership_source: Arc<FakeOwnershipSource>,
    owner: Option<&str>,
    request: Request,
) -> Response {
    let class = gateway.classify_request(&request);
    match ownership_source.pass_rest(owner, class) {
        Ok(pass) => {
            let client = request.extensions().get().copied();
            response(gateway.forward(pass, request, client).await)
        }
        Err(rejection) => response(Err(rejection.into())),
    }
}

/// The error of a command as a client sees it.
fn error_json(blocked: &CommandError) -> Value {
    match blocked {
        CommandError::Rejected(rejection) => {
            json!({ "code": rejection.code.as_str(), "message": rejection.message })
        }
        CommandError::Problem(problem) => {
            json!({ "code": problem.code.as_str(), "message": problem.message })
        }
    }
}

/// What a route would answer.
fn response(answered: Result<Response, CommandError>) -> Response {
    answered.unwrap_or_else(|blocked| {
        let body = json!({ "success": false, "error": error_json(&blocked) }).to_string();
        Response::builder().status(blocked.status()).body(body.into()).unwrap()
    })
}

fn get(target: &str) -> Request {
    Request::get(target).body(Body::empty()).unwrap()
}

fn post(target: &str, body: impl Into<Body>) -> Request {
    Request::post(target).body(body.into()).unwrap()
}

/// Status and body, which is JSON or text.
async fn read(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
    (status, serde_json::from_slice(&bytes).unwrap_or_else(|_| text()))
}

/// The code of an error in the control face's shape.
async fn code(response: Response) -> (u16, String) {
    let (status, body) = read(response).await;
    assert_eq!(body["success"], false, "{body}");
    (status, body["error"]["code"].as_str().unwrap().to_owned())
}

async fn soon<T>(happens: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(20), happens).await.expect("it happens soon")
}

/// Whether something does not happen for a while.
async fn not_yet<T>(happens: impl Future<Output = T>) -> bool {
    timeout(Duration::from_millis(200), happens).await.is_err()
}
