//! The gateway in front of a scripted WLED on a real port.

mod changes;
mod http;
mod lost;
mod sockets;
mod wires;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http_body_util::BodyExt as _;
use parking_lot::Mutex;
use serde_json::Value;
use tenure_control::gateway::Rules;
use tenure_control::hand::{Hand, Held, Owner, Pass, TokenDigest};
use tenure_control::matrix::Class;
use tenure_control::refusal::Refusal;
use tenure_core::kernel::{Fence, Span, Tick};
use tenure_testkit::wled::{Mood, Wled};
use tokio::sync::watch;
use tokio::time::timeout;

use super::{Gateway, GatewaySettings, Hands, Patience, answer};

/// Who knows the lease, with the real hand.
struct Desk {
    hand: Mutex<(Hand, u64)>,
    changes: watch::Sender<u64>,
    now: AtomicU64,
    /// Whether somebody asked whose hand it is and kept the next change from being told meanwhile.
    was_kept_out: AtomicBool,
}

impl Desk {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            hand: Mutex::default(),
            changes: watch::Sender::new(0),
            now: AtomicU64::new(0),
            was_kept_out: AtomicBool::new(false),
        })
    }

    /// Somebody else has the lease now, or somebody at all. The answer is the generation that began.
    fn give(&self, identity: &str) -> u64 {
        let mut hand = self.hand.lock();
        hand.1 += 1;
        let fence = Fence(hand.1);
        if let Some(fence) = hand.0.held().map(|held| held.fence) {
            hand.0.let_go(fence);
        }
        let owner = Owner {
            identity: identity.into(),
            websocket_client_id: 1,
            client_name: identity.into(),
            instance_id: "".into(),
            token: TokenDigest::of(&format!("{identity}-token")),
        };
        let (acquired_at, ttl) = (self.now(), Span::from_secs(5));
        hand.0.take(Held {
            fence,
            lease_id: "cl_1".into(),
            owner,
            acquired_at,
            expires_at: Tick(acquired_at.0 + ttl.0),
            ttl,
        });
        self.tell(&hand.0)
    }

    fn take_back(&self) -> u64 {
        let mut hand = self.hand.lock();
        let fence = hand.0.held().unwrap().fence;
        hand.0.let_go(fence);
        self.tell(&hand.0)
    }

    fn now(&self) -> Tick {
        Tick(self.now.load(Ordering::Acquire))
    }

    fn tell(&self, hand: &Hand) -> u64 {
        self.changes.send_replace(hand.generation());
        hand.generation()
    }

    fn pass_rest(&self, owner: Option<&str>, class: Class) -> Result<Pass, Refusal> {
        let token = owner.map(|owner| format!("{owner}-token"));
        self.hand.lock().0.pass_rest(token.as_deref(), None, class, self.now())
    }

    fn pass_websocket(&self, identity: &str, class: Class) -> Result<Pass, Refusal> {
        self.hand.lock().0.pass_websocket(identity, class, self.now())
    }
}

impl Hands for Desk {
    fn still_counts(&self, pass: Pass) -> Result<(), Refusal> {
        self.hand.lock().0.still_counts(pass, self.now())
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn owns(&self, identity: &str) -> bool {
        // Who tells of a change holds what the real desk needs for this answer: each would wait for the other.
        let (changes, (tell, told)) = (self.changes.clone(), std::sync::mpsc::channel());
        std::thread::spawn(move || tell.send(changes.send_if_modified(|_| false)));
        if told.recv_timeout(Duration::from_secs(3)).is_err() {
            self.was_kept_out.store(true, Ordering::Release);
        }
        self.hand.lock().0.held().is_some_and(|held| &*held.owner.identity == identity)
    }

    fn millis(&self) -> u32 {
        1_208_600
    }
}

struct Stage {
    wled: Wled,
    desk: Arc<Desk>,
    gateway: Arc<Gateway>,
}

async fn stage() -> Stage {
    stage_with(|_| {}).await
}

async fn stage_with(change: impl FnOnce(&mut GatewaySettings)) -> Stage {
    stage_before(Wled::start().await, change)
}

fn stage_before(wled: Wled, change: impl FnOnce(&mut GatewaySettings)) -> Stage {
    let mut settings = settings(&wled.url());
    change(&mut settings);
    let desk = Desk::new();
    let gateway = Arc::new(Gateway::new(settings, desk.clone()));
    Stage { wled, desk, gateway }
}

fn settings(url: &str) -> GatewaySettings {
    // What is cut because hands change is not to be taken for what is cut because nobody waits any longer.
    let first_byte = Duration::from_secs(60);
    let patience = Patience { first_byte, reopen: Duration::from_millis(20), ..Patience::default() };
    GatewaySettings { device: url.parse().unwrap(), rules: Rules::wled(), patience }
}

impl Stage {
    /// Asks as a route would: class, pass, forward.
    async fn ask(&self, owner: Option<&str>, request: Request) -> Response {
        ask(self.gateway.clone(), self.desk.clone(), owner, request).await
    }

    fn asking(&self, owner: Option<&'static str>, request: Request) -> tokio::task::JoinHandle<Response> {
        tokio::spawn(ask(self.gateway.clone(), self.desk.clone(), owner, request))
    }
}

async fn ask(gateway: Arc<Gateway>, desk: Arc<Desk>, owner: Option<&str>, request: Request) -> Response {
    let class = gateway.classify_request(&request);
    match desk.pass_rest(owner, class) {
        Ok(pass) => gateway.forward(pass, request).await,
        Err(refusal) => answer::on_rest(&refusal.into(), desk.millis()),
    }
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
    assert_eq!((&body["timestamp"], &body["version"]), (&1_208_600.into(), &"2.0".into()), "{body}");
    (status, body["error"]["code"].as_str().unwrap().to_owned())
}

async fn soon<T>(happens: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(20), happens).await.expect("it happens soon")
}

/// Whether something does not happen for a while.
async fn not_yet<T>(happens: impl Future<Output = T>) -> bool {
    timeout(Duration::from_millis(200), happens).await.is_err()
}
