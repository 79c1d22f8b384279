//! One connection, from its first byte to its last.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::refuse::{self, farewell};
use super::serve::{Left, serve};
use super::stream::{Peer, Stream};
use crate::tls::Tls;

/// A handshake must be complete within this time.
const HANDSHAKE_TIME: Duration = Duration::from_secs(5);

pub(super) struct Talk {
    pub(super) router: Router,
    /// How long a connection is kept that nobody uses.
    pub(super) idle: Duration,
    /// How long an answer waits for a caller that takes nothing of it.
    pub(super) unread: Duration,
    /// Room for idle connections that are kept ready.
    pub(super) warm: Arc<Semaphore>,
    pub(super) tls: Option<Arc<Tls>>,
}

/// Talks until one side has enough.
///
/// Between two requests nothing is kept but the socket: fifteen thousand callers that have nothing to say cost a few
/// megabytes, and the clock for a header starts with its first byte.
pub(super) async fn talk(
    stream: Stream,
    peer: Peer,
    is_tls: bool,
    shared: Arc<Talk>,
    mut stop: watch::Receiver<bool>,
) {
    let mut stream = match (stream, &shared.tls) {
        (Stream::Network(stream), Some(tls)) if is_tls => {
            let handshake = Box::pin(tls.acceptor().accept(stream));
            match timeout(HANDSHAKE_TIME, handshake).await {
                Ok(Ok(stream)) => Stream::Tls(Box::new(stream)),
                // What it would be told, it could not read.
                _ => return,
            }
        }
        (stream, _) => stream,
    };
    let mut begun = Vec::new();
    loop {
        if begun.is_empty() {
            let mut first = [0];
            let read = tokio::select! {
                read = timeout(shared.idle, stream.read(&mut first)) => read,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            let Ok(Ok(1)) = read else { return };
            begun.push(first[0]);
        }
        // In a box, so that a connection that waits is small.
        match Box::pin(serve(stream, begun, peer, &shared, &mut stop)).await {
            Left::Idle { stream: same, begun: bytes } => (stream, begun) = (same, bytes),
            Left::Done { stream } => return farewell(stream).await,
            Left::TooSlow { mut stream } => {
                let _ = timeout(refuse::TIME, stream.write_all(&refuse::too_slow())).await;
                return farewell(stream).await;
            }
            Left::Upgraded { stream, begun, upgrade } => return upgrade.go_on(stream, begun, stop).await,
            Left::Gone => return,
        }
    }
}
