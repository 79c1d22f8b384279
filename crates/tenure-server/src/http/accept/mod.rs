//! Takes connections, keeps them in bounds, and lets them end in good order. A loop of our own, because `axum::serve`
//! has no limits: a header that is never finished would keep its connection for ever.
//!
//! ```text
//! accept ──> room?  no: 503, and closed
//!              talk     waits for the first byte of a request, and keeps nothing while it waits
//!                serve    hyper, for as long as requests come; what it is given goes through:
//!                  guarded  what nobody reads is not written for ever; hyper's own refusals become problems
//!                  tracked  says when nothing is under way
//!                upgrade  what comes after HTTP, where both sides agreed on that
//! ```

mod connection;
mod http_stream;
mod limits;
mod reject;
mod serve;
mod stream;
mod tracked_service;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::connection::{ConnectionContext, run_connection};
pub use self::limits::ConnectionLimits;
pub(crate) use self::limits::ConnectionUpgrade;
use self::stream::AcceptedConnection;
pub(crate) use self::stream::{Peer, Stream};
use crate::metrics::{GaugeGuard, Metrics};
use crate::tls::ReloadableTls;

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
                connections.spawn(reject::reject_connection(stream, permit));
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
