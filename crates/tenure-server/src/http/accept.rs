//! Takes connections, and lets them end in good order. A loop of our own, because `axum::serve` has no header timer: a
//! header that is never finished would keep its connection for ever.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// A header must be complete within this time; a connection that is kept and not used is closed after it too.
const HEADER_TIME: Duration = Duration::from_secs(5);
/// What was asked must be answered within this time when the server stops. The rest of the 10 s is for the ledger.
const DRAIN_TIME: Duration = Duration::from_secs(8);
/// The most connections at once. More wait for the system to hand them over.
const MOST_CONNECTIONS: usize = 8_192;
/// The most bytes of a request's line and headers.
const MOST_HEADER_BYTES: usize = 32 << 10;

/// Serves until `stop`, then lets what was asked be answered.
pub(crate) async fn serve(listener: TcpListener, router: Router, mut stop: oneshot::Receiver<()>) {
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            let permit = room.clone().acquire_owned().await.expect("it is never closed");
            (accept(&listener).await, permit)
        };
        let (stream, permit) = tokio::select! {
            _ = &mut stop => break,
            next = next => next,
        };
        // What has ended takes no memory.
        while connections.try_join_next().is_some() {}
        let (router, watcher) = (router.clone(), graceful.watcher());
        connections.spawn(async move {
            talk(stream, router, watcher).await;
            drop(permit);
        });
    }
    // Nobody new; who comes now is refused by the system, and goes elsewhere.
    drop(listener);
    let _ = timeout(DRAIN_TIME, graceful.shutdown()).await;
    connections.shutdown().await;
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // Too many open files, or a caller that hung up: neither is a reason to spin or to end.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn talk(stream: TcpStream, router: Router, watcher: Watcher) {
    // An answer is one small write: waiting for more to send would only delay it.
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(MOST_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // It ends with an error when the caller hangs up or sends what is not HTTP: nobody is left to tell.
    let _ = watcher.watch(connection).await;
}
