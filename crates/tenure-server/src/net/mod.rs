//! Accepts connections, limits them, and drains them at the end. The accept loop is our own, because `axum::serve` has no
//! limits: a header that is never finished would keep its connection for ever.
//!
//! ```text
//! accept ──> no free slot?  503, and closed
//!            connection     waits for the first byte of a request without a buffer; then hyper, while requests arrive
//!            http_stream    ends a write that the client does not read; problems instead of hyper's own errors
//!            local_socket   the Unix socket, in a folder of its owner
//!            tls            certificate and key, which can be reloaded
//! ```

mod connection;
mod http_stream;
pub(crate) mod local_socket;
pub(crate) mod tls;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit, setrlimit};
use tenure_api::{Code, Problem};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::connection::{ConnectionContext, run_connection};
use self::http_stream::AcceptedConnection;
pub(crate) use self::http_stream::{Peer, Stream};
use crate::metrics::{GaugeGuard, Metrics};
use crate::net::tls::ReloadableTls;

/// What was asked must be answered within this time when the server stops. The rest of the 10 s is for the ledger.
const DRAIN_TIME: Duration = Duration::from_secs(8);
/// How many local connections there is room for when the network has taken all there is: whoever is on the machine can
/// still look at what is wrong.
const RESERVED_LOCAL_CONNECTIONS: usize = 64;
/// How many are told at once that there is no room. More are closed without a word.
const MAX_REJECTIONS: usize = 256;
/// How many idle connections are kept ready for their next request.
const MAX_WARM: usize = 512;

pub(crate) struct Listeners {
    pub(crate) network: Option<TcpListener>,
    pub(crate) tls: Option<Arc<ReloadableTls>>,
    pub(crate) local: Option<UnixListener>,
}

/// Serves until `stop`, then lets what was asked be answered.
pub(crate) async fn serve(
    listeners: Listeners,
    router: Router,
    limits: ConnectionLimits,
    metrics: Arc<Metrics>,
    mut stop: watch::Receiver<bool>,
) {
    let slots = ConnectionSlots::new(limits.effective_connections());
    let rejections = Arc::new(Semaphore::new(MAX_REJECTIONS));
    let context = Arc::new(ConnectionContext {
        router,
        idle: limits.idle,
        write_timeout: limits.write_timeout,
        warm: Arc::new(Semaphore::new(MAX_WARM)),
        tls: listeners.tls.clone(),
    });
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = next(&listeners) => accepted,
        };
        // What has ended takes no memory.
        while connections.try_join_next().is_some() {}
        let AcceptedConnection { stream, peer, is_tls } = accepted;
        let Some(permit) = slots.take(peer) else {
            // A caller that expects TLS could not read a word.
            if let Ok(permit) = rejections.clone().try_acquire_owned()
                && !is_tls
            {
                connections.spawn(reject_connection(stream, permit));
            }
            continue;
        };
        let (talking, stop, counted) = (context.clone(), stop.clone(), GaugeGuard::new(&metrics.connections));
        connections.spawn(async move {
            run_connection(stream, peer, is_tls, talking, stop).await;
            drop((permit, counted));
        });
    }
    // Nobody new; who comes now is refused by the system, and goes elsewhere.
    drop(listeners);
    let _ = timeout(DRAIN_TIME, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
}

/// How many connections there may be.
struct ConnectionSlots {
    all: Arc<Semaphore>,
    reserved_local: Arc<Semaphore>,
}

impl ConnectionSlots {
    fn new(connections: usize) -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Self { all: semaphore(connections), reserved_local: semaphore(RESERVED_LOCAL_CONNECTIONS) }
    }

    fn take(&self, peer: Peer) -> Option<OwnedSemaphorePermit> {
        let permit = self.all.clone().try_acquire_owned().ok();
        permit.or_else(|| match peer {
            Peer::Network { .. } => None,
            Peer::Local { .. } => self.reserved_local.clone().try_acquire_owned().ok(),
        })
    }
}

async fn next(listeners: &Listeners) -> AcceptedConnection {
    loop {
        let accepted = tokio::select! {
            accepted = from_network(listeners) => accepted,
            accepted = from_local(listeners) => accepted,
        };
        match accepted {
            Ok(accepted) => return accepted,
            // Too many open files, or a caller that hung up: neither is a reason to spin or to end.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn from_network(listeners: &Listeners) -> io::Result<AcceptedConnection> {
    let Some(listener) = &listeners.network else { return std::future::pending().await };
    let (stream, address) = listener.accept().await?;
    // An answer is one small write: waiting for more to send would only delay it.
    let _ = stream.set_nodelay(true);
    let peer = Peer::Network { address: Some(address.ip()) };
    Ok(AcceptedConnection { stream: Stream::Network(stream), peer, is_tls: listeners.tls.is_some() })
}

async fn from_local(listeners: &Listeners) -> io::Result<AcceptedConnection> {
    let Some(listener) = &listeners.local else { return std::future::pending().await };
    let (stream, _) = listener.accept().await?;
    let peer = stream.peer_cred()?;
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok());
    let peer = Peer::Local { uid: peer.uid(), pid };
    Ok(AcceptedConnection { stream: Stream::Local(stream), peer, is_tls: false })
}

/// How many open files are left for the ledger and everything else.
const RESERVED_FILES: u64 = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The most connections at once. One more is told so, and closed.
    pub connections: usize,
    /// How long a connection is kept that nobody uses.
    pub idle: Duration,
    /// How long an answer waits for a caller that takes nothing of it: after that, nobody is there any more.
    pub write_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { connections: 16_384, idle: Duration::from_secs(75), write_timeout: Duration::from_secs(30) }
    }
}

impl ConnectionLimits {
    /// As many connections as there may be and the system has files for. What it permits is taken, not only what it
    /// gives without being asked; whoever comes then is told that there is no room, and does not hang.
    fn effective_connections(&self) -> usize {
        let mut limit = getrlimit(Resource::Nofile);
        if limit.current.is_some() && limit.current != limit.maximum {
            limit.current = limit.maximum;
            let _ = setrlimit(Resource::Nofile, limit);
        }
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        // With few files, half of them: there must be room for somebody.
        let files = files.saturating_sub(RESERVED_FILES).max(files / 2);
        self.connections.min(usize::try_from(files).unwrap_or(usize::MAX))
    }
}

/// Speaks on a connection until its end, or until the server stops. The bytes are what was read of it already.
type UpgradeHandler = Box<
    dyn FnOnce(Stream, Vec<u8>, watch::Receiver<bool>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send,
>;

/// Goes with an answer that says 101, as one of its extensions.
#[derive(Clone)]
pub(crate) struct ConnectionUpgrade(Arc<Mutex<Option<UpgradeHandler>>>);

impl ConnectionUpgrade {
    /// The connection goes on with `conversation` once the answer is sent.
    pub(crate) fn new<F>(
        conversation: impl FnOnce(Stream, Vec<u8>, watch::Receiver<bool>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let boxed: UpgradeHandler =
            Box::new(move |stream, prefix, stop| Box::pin(conversation(stream, prefix, stop)));
        Self(Arc::new(Mutex::new(Some(boxed))))
    }

    pub(super) async fn run(self, stream: Stream, prefix: Vec<u8>, stop: watch::Receiver<bool>) {
        let conversation = self.0.lock().take();
        if let Some(conversation) = conversation {
            conversation(stream, prefix, stop).await;
        }
    }
}

/// How long a caller is given to take the last word.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The most bytes that are read and dropped meanwhile.
const MAX_DISCARDED_BYTES: usize = 16 << 20;

/// Tells a client that there are too many connections, and closes.
async fn reject_connection(stream: Stream, permit: OwnedSemaphorePermit) {
    let detail = "as many connections are open as may be; nothing was looked at, ask again a little later";
    reject(stream, &Problem::new(Code::TooManyConnections, detail)).await;
    drop(permit);
}

/// Sends a problem, and closes.
pub(super) async fn reject(mut stream: Stream, problem: &Problem) {
    let response = answer(problem);
    if let Ok(Ok(())) = timeout(CLOSE_TIMEOUT, stream.write_all(&response)).await {
        lingering_close(stream).await;
    }
}

/// Says that nothing more comes, and takes in what is still under way: an answer that was sent gets lost if bytes that
/// nobody read are still there when the connection is closed.
pub(crate) async fn lingering_close(mut stream: Stream) {
    let take_in = async {
        stream.shutdown().await?;
        let (mut rest, mut dropped) = (vec![0; 16 << 10], 0);
        while dropped < MAX_DISCARDED_BYTES {
            match stream.read(&mut rest).await? {
                0 => break,
                read => dropped += read,
            }
        }
        std::io::Result::Ok(())
    };
    let _ = timeout(CLOSE_TIMEOUT, Box::pin(take_in)).await;
}

fn answer(problem: &Problem) -> Vec<u8> {
    let body = serde_json::to_vec(problem).expect("text and numbers can be written as JSON");
    let (status, media_type) = (problem.status, Problem::MEDIA_TYPE);
    let reason = http_reason(status);
    let retry = problem.code.retry_after_seconds().map(|seconds| format!("retry-after: {seconds}\r\n"));
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: {media_type}\r\ncache-control: no-store\r\n{}connection: close\r\n\
         content-length: {}\r\n\r\n",
        retry.unwrap_or_default(),
        body.len()
    );
    [head.into_bytes(), body].concat()
}

fn http_reason(status: u16) -> &'static str {
    axum::http::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or("Problem")
}
