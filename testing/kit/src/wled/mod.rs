//! A WLED by its public documentation (<https://kno.wled.ge/interfaces/json-api/>, `http-api`, `websocket`), on a real
//! port. It keeps a state, records in which order commands took effect, and stalls when it is told to.

mod http;
mod socket;

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
pub enum Mood {
    /// Obeys at once.
    Obeys,
    /// Does not read bodies or messages.
    StallsBeforeReading,
    /// Reads everything, and obeys only when it is told to go on, even if the client is gone by then.
    StallsBeforeObeying,
}

/// A request as it came in.
#[derive(Debug, Clone)]
pub struct Seen {
    pub line: String,
    pub headers: Vec<(String, String)>,
}

/// The device's inside.
pub struct Inside {
    state: Mutex<Map<String, Value>>,
    obeyed: Mutex<Vec<String>>,
    seen: Mutex<Vec<Seen>>,
    mood: watch::Sender<Mood>,
    changed: broadcast::Sender<()>,
    /// Bytes of bodies.
    received: AtomicU64,
    /// WebSockets that are open, and that ever were.
    sockets: watch::Sender<usize>,
    opened: AtomicUsize,
    /// Commands under way, and the most that there ever were at once.
    moving: AtomicUsize,
    most_moving: AtomicUsize,
}

/// A device that runs. Dropped, it is gone from the network.
pub struct Wled {
    pub address: SocketAddr,
    pub inside: Arc<Inside>,
    serving: JoinHandle<()>,
}

impl Drop for Wled {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Wled {
    pub async fn start() -> Self {
        Self::start_on(TcpSocket::new_v4().unwrap(), false).await
    }

    /// One that takes a few bytes at a time, as a microcontroller does, and does what it has read whether or not the
    /// caller is still there.
    pub async fn start_small() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4 << 10).unwrap();
        Self::start_on(socket, true).await
    }

    async fn start_on(socket: TcpSocket, is_stubborn: bool) -> Self {
        let state = json!({"on": true, "bri": 127, "transition": 7, "ps": -1, "pl": -1, "mainseg": 0});
        let Value::Object(state) = state else { unreachable!() };
        let inside = Arc::new(Inside {
            state: Mutex::new(state),
            obeyed: Mutex::default(),
            seen: Mutex::default(),
            mood: watch::Sender::new(Mood::Obeys),
            changed: broadcast::Sender::new(64),
            received: AtomicU64::new(0),
            sockets: watch::Sender::new(0),
            opened: AtomicUsize::new(0),
            moving: AtomicUsize::new(0),
            most_moving: AtomicUsize::new(0),
        });
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let listener = socket.listen(64).unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(serve(listener, inside.clone(), is_stubborn));
        Self { address, inside, serving }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on it behaves like this.
    pub fn feel(&self, mood: Mood) {
        self.inside.mood.send_replace(mood);
    }

    /// Which commands took effect, in their order.
    pub fn obeyed(&self) -> Vec<String> {
        lock(&self.inside.obeyed).clone()
    }

    /// Which requests came, in their order.
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.inside.seen).clone()
    }

    pub fn state(&self, name: &str) -> Value {
        lock(&self.inside.state).get(name).cloned().unwrap_or(Value::Null)
    }

    pub fn received(&self) -> u64 {
        self.inside.received.load(Ordering::Acquire)
    }

    /// How many commands are under way.
    pub fn moving(&self) -> usize {
        self.inside.moving.load(Ordering::Acquire)
    }

    pub fn most_moving(&self) -> usize {
        self.inside.most_moving.load(Ordering::Acquire)
    }

    /// How many WebSockets were ever opened.
    pub fn opened(&self) -> usize {
        self.inside.opened.load(Ordering::Acquire)
    }

    /// Waits until so many WebSockets are open.
    pub async fn has_sockets(&self, count: usize) {
        let mut sockets = self.inside.sockets.subscribe();
        let waited = timeout(Duration::from_secs(20), sockets.wait_for(|now| *now == count)).await;
        assert!(waited.is_ok(), "{count} WebSockets expected, {} are open", *self.inside.sockets.borrow());
    }

    /// Waits until this holds.
    pub async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..2_000 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("never: {what}; obeyed {:?}, seen {:?}", self.obeyed(), self.seen());
    }
}

impl Inside {
    /// Waits until it does not behave like this.
    async fn not(&self, mood: Mood) {
        let _ = self.mood.subscribe().wait_for(|now| *now != mood).await;
    }

    /// Obeys: the command takes effect.
    fn obey(&self, command: &str, fields: &Map<String, Value>) {
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
        lock(&self.obeyed).push(command.to_owned());
        let _ = self.changed.send(());
    }

    /// `state` and `info`, as `/json/si` and every WebSocket get them.
    fn state_and_info(&self) -> Value {
        let clients = *self.sockets.borrow();
        json!({"state": *lock(&self.state), "info": {"ver": "0.15.0", "brand": "WLED", "ws": clients}})
    }
}

async fn serve(listener: TcpListener, inside: Arc<Inside>, is_stubborn: bool) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let inside = inside.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| http::answer(inside.clone(), request));
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
