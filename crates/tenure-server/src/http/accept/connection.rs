//! One connection, from its first byte to its last.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::reject::{self, lingering_close};
use super::serve::{ConnectionOutcome, serve};
use super::stream::{Peer, Stream};
use crate::tls::ReloadableTls;

/// A handshake must be complete within this time.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct ConnectionContext {
    pub(super) router: Router,
    /// How long a connection is kept that nobody uses.
    pub(super) idle: Duration,
    /// How long an answer waits for a caller that takes nothing of it.
    pub(super) write_timeout: Duration,
    /// Room for idle connections that are kept ready.
    pub(super) warm: Arc<Semaphore>,
    pub(super) tls: Option<Arc<ReloadableTls>>,
}

/// Talks until one side has enough.
///
/// Between two requests nothing is kept but the socket: fifteen thousand callers that have nothing to say cost a few
/// megabytes, and the clock for a header starts with its first byte.
pub(super) async fn run_connection(
    stream: Stream,
    peer: Peer,
    is_tls: bool,
    shared: Arc<ConnectionContext>,
    mut stop: watch::Receiver<bool>,
) {
    let mut stream = match (stream, &shared.tls) {
        (Stream::Network(stream), Some(tls)) if is_tls => {
            let handshake = Box::pin(tls.acceptor().accept(stream));
            match timeout(HANDSHAKE_TIMEOUT, handshake).await {
                Ok(Ok(stream)) => Stream::Tls(Box::new(stream)),
                // What it would be told, it could not read.
                _ => return,
            }
        }
        (stream, _) => stream,
    };
    let mut prefix = Vec::new();
    loop {
        if prefix.is_empty() {
            let mut first = [0];
            let read = tokio::select! {
                read = timeout(shared.idle, stream.read(&mut first)) => read,
                _ = stop.wait_for(|stop| *stop) => return,
            };
            let Ok(Ok(1)) = read else { return };
            prefix.push(first[0]);
        }
        // In a box, so that a connection that waits is small.
        match Box::pin(serve(stream, prefix, peer, &shared, &mut stop)).await {
            ConnectionOutcome::Idle { stream: same, prefix: bytes } => (stream, prefix) = (same, bytes),
            ConnectionOutcome::Done { stream } => return lingering_close(stream).await,
            ConnectionOutcome::TooSlow { mut stream } => {
                let _ = timeout(reject::CLOSE_TIMEOUT, stream.write_all(&reject::header_timeout_response()))
                    .await;
                return lingering_close(stream).await;
            }
            ConnectionOutcome::Upgraded { stream, prefix, upgrade } => {
                return upgrade.run(stream, prefix, stop).await;
            }
            ConnectionOutcome::Gone => return,
        }
    }
}
