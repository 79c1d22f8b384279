//! A fake WLED by its public documentation (<https://kno.wled.ge/interfaces/json-api/>, `http-api`, `websocket`), on a real
//! port. It keeps a state, records in which order commands took effect, and stalls on request.

mod http;
mod websocket;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// What it does with commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StallMode {
    /// Obeys at once.
    None,
    /// Does not read bodies or messages.
    BeforeReading,
    /// Reads everything, and obeys only when it is told to go on, even if the client is gone by then.
    BeforeApplying,
}

/// A request as it came in.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub line: String,
    pub headers: Vec<(String, String)>,
}

/// The device's inside.
pub struct DeviceState {
    state: Mutex<Map<String, Value>>,
    applied_commands: Mutex<Vec<String>>,
    received_requests: Mutex<Vec<ReceivedRequest>>,
    stall_mode: watch::Sender<StallMode>,
    changed: broadcast::Sender<()>,
    /// Bytes of bodies.
    received_bytes: AtomicU64,
    /// WebSockets that are open, and that ever were.
    sockets: watch::Sender<usize>,
    opened_sockets: AtomicUsize,
    /// Commands under way, and the most that there ever were at once.
    pending_commands: AtomicUsize,
    max_pending_commands: AtomicUsize,
}

/// A device that runs. Dropped, it is gone from the network.
pub struct FakeWled {
    pub address: SocketAddr,
    pub device: Arc<DeviceState>,
    serving: JoinHandle<()>,
}

impl Drop for FakeWled {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl FakeWled {
    pub async fn start() -> Self {
        Self::start_on(TcpSocket::new_v4().unwrap(), false).await
    }

    /// One that takes a few bytes at a time, as a microcontroller does, and does what it has read whether or not the
    /// caller is still there.
    pub async fn start_with_small_buffer() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4 << 10).unwrap();
        Self::start_on(socket, true).await
    }

    async fn start_on(socket: TcpSocket, is_stubborn: bool) -> Self {
        let state = json!({"on": true, "bri": 127, "transition": 7, "ps": -1, "pl": -1, "mainseg": 0});
        let Value::Object(state) = state else { unreachable!() };
        let inside = Arc::new(DeviceState {
            state: Mutex::new(state),
            applied_commands: Mutex::default(),
            received_requests: Mutex::default(),
            stall_mode: watch::Sender::new(StallMode::None),
            changed: broadcast::Sender::new(64),
            received_bytes: AtomicU64::new(0),
            sockets: watch::Sender::new(0),
            opened_sockets: AtomicUsize::new(0),
            pending_commands: AtomicUsize::new(0),
            max_pending_commands: AtomicUsize::new(0),
        });
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let listener = socket.listen(64).unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(serve(listener, inside.clone(), is_stubborn));
        Self { address, device: inside, serving }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on it behaves like this.
    pub fn set_stall_mode(&self, mood: StallMode) {
        self.device.stall_mode.send_replace(mood);
    }

    /// Which commands took effect, in their order.
    pub fn applied_commands(&self) -> Vec<String> {
        lock(&self.device.applied_commands).clone()
    }

    /// Which requests came, in their order.
    pub fn received_requests(&self) -> Vec<ReceivedRequest> {
        lock(&self.device.received_requests).clone()
    }

    pub fn state(&self, name: &str) -> Value {
        lock(&self.device.state).get(name).cloned().unwrap_or(Value::Null)
    }

    pub fn received_bytes(&self) -> u64 {
        self.device.received_bytes.load(Ordering::Acquire)
    }

    /// How many commands are under way.
    pub fn pending_commands(&self) -> usize {
        self.device.pending_commands.load(Ordering::Acquire)
    }

    pub fn max_pending_commands(&self) -> usize {
        self.device.max_pending_commands.load(Ordering::Acquire)
    }

    /// How many WebSockets were ever opened.
    pub fn opened_sockets(&self) -> usize {
        self.device.opened_sockets.load(Ordering::Acquire)
    }

    /// Waits until so many WebSockets are open.
    pub async fn wait_for_sockets(&self, count: usize) {
        let mut sockets = self.device.sockets.subscribe();
        let waited = timeout(Duration::from_secs(20), sockets.wait_for(|now| *now == count)).await;
        assert!(waited.is_ok(), "{count} WebSockets expected, {} are open", *self.device.sockets.borrow());
    }

    /// Waits until this holds.
    pub async fn wait_until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..2_000 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("never: {what}; obeyed {:?}, seen {:?}", self.applied_commands(), self.received_requests());
    }
}

impl DeviceState {
    /// Waits until it does not behave like this.
    async fn wait_while(&self, mood: StallMode) {
        let _ = self.stall_mode.subscribe().wait_for(|now| *now != mood).await;
    }

    /// Obeys: the command takes effect.
    fn apply(&self, command: &str, fields: &Map<String, Value>) {
        let mut state = lock(&self.state);
        for (name, value) in fields {
            // `v` asks for an answer; `"t"` toggles.
            match (name.as_str(), value) {
                ("v", _) => {}
                ("on", Value::String(toggle)) if toggle == "t" => {
                    let is_on = state.get("on").and_then(Value::as_bool).unwrap_or_default();
                    state.insert("on".into(), (!is_on).into());
                }
                _ => drop(state.insert(name.clone(), value.clone())),
            }
        }
        lock(&self.applied_commands).push(command.to_owned());
        let _ = self.changed.send(());
    }

    /// `state` and `info`, as `/json/si` and every WebSocket get them.
    fn state_and_info(&self) -> Value {
        let clients = *self.sockets.borrow();
        json!({"state": *lock(&self.state), "info": {"ver": "0.15.0", "brand": "WLED", "ws": clients}})
    }
}

async fn serve(listener: TcpListener, inside: Arc<DeviceState>, is_stubborn: bool) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let inside = inside.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| http::handle(inside.clone(), request));
            let connection = hyper::server::conn::http1::Builder::new()
                .half_close(is_stubborn)
                .serve_connection(TokioIo::new(stream), service);
            // A client may hang up at any time.
            let _ = connection.with_upgrades().await;
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
