//! One connection, from its first byte to its last.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http1::{Builder, Connection};
use hyper::service::Service;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::http_stream::{HttpStream, Peer, Stream};
use super::{ConnectionUpgrade, lingering_close};
use crate::net;
use crate::net::tls::ReloadableTls;

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
                let _ = timeout(net::CLOSE_TIMEOUT, stream.write_all(&net::header_timeout_response())).await;
                return lingering_close(stream).await;
            }
            ConnectionOutcome::Upgraded { stream, prefix, upgrade } => {
                return upgrade.run(stream, prefix, stop).await;
            }
            ConnectionOutcome::Gone => return,
        }
    }
}

/// A header must be complete within this time from its first byte.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes of a request's line and headers.
const MAX_HEADER_BYTES: usize = 32 << 10;
/// How long a connection is kept ready for its next request, where there is room for that.
const WARM_TIME: Duration = Duration::from_secs(1);

pub(super) enum ConnectionOutcome {
    /// Nothing is under way, and it can go on; `prefix` is what was read of the next request.
    Idle {
        stream: Stream,
        prefix: Vec<u8>,
    },
    Done {
        stream: Stream,
    },
    /// A header was not complete in time.
    TooSlow {
        stream: Stream,
    },
    /// Both sides agreed to go on with something else.
    Upgraded {
        stream: Stream,
        prefix: Vec<u8>,
        upgrade: ConnectionUpgrade,
    },
    /// Nobody is at the other end.
    Gone,
}

/// What a poll of the connection tells.
enum ConnectionEvent {
    Ended(hyper::Result<()>),
    BecameIdle,
    BecameBusy,
}

type Http = Connection<TokioIo<HttpStream>, TrackedService>;

/// Answers requests until the connection ends, or nothing more comes for a while.
pub(super) async fn serve(
    stream: Stream,
    prefix: Vec<u8>,
    peer: Peer,
    shared: &ConnectionContext,
    stop: &mut watch::Receiver<bool>,
) -> ConnectionOutcome {
    let activity = Arc::new(ConnectionActivity::default());
    let service = TrackedService::new(shared.router.clone(), peer, activity.clone());
    let guarded = HttpStream::new(stream, prefix, shared.write_timeout, activity.clone());
    let mut connection = Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(guarded), service);
    // Room among those that are kept ready, and until when; nothing while something is under way.
    let mut warm = None;
    // How many requests there had been when it was set aside.
    let mut set_aside = None;
    let (mut is_idle, mut is_shutting_down) = (false, false);
    let result = loop {
        let until = warm.as_ref().map(|(_, until)| *until);
        let step = tokio::select! {
            biased;
            step = std::future::poll_fn(|context| step(&mut connection, &activity, is_idle, context)) => step,
            _ = stop.wait_for(|stop| *stop), if !is_shutting_down => {
                is_shutting_down = true;
                Pin::new(&mut connection).graceful_shutdown();
                continue;
            }
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                warm = None;
                set_aside = Some(activity.started());
                Pin::new(&mut connection).graceful_shutdown();
                continue;
            }
        };
        match step {
            ConnectionEvent::Ended(result) => break result,
            ConnectionEvent::BecameBusy => (warm, is_idle) = (None, false),
            ConnectionEvent::BecameIdle => {
                is_idle = true;
                if is_shutting_down {
                    continue;
                }
                warm = shared
                    .warm
                    .clone()
                    .try_acquire_owned()
                    .ok()
                    .map(|permit| (permit, Instant::now() + WARM_TIME));
                if warm.is_none() {
                    set_aside = Some(activity.started());
                    Pin::new(&mut connection).graceful_shutdown();
                }
            }
        }
    };
    let parts = connection.into_parts();
    let (stream, unread) = parts.io.into_inner().into_parts();
    if let (Ok(()), Some(upgrade)) = (&result, activity.take_upgrade()) {
        return ConnectionOutcome::Upgraded {
            stream,
            prefix: [&parts.read_buf[..], &unread[..]].concat(),
            upgrade,
        };
    }
    match result {
        // Hyper closed it because we said so, in the middle of nothing: for the caller nothing has changed.
        Ok(()) if set_aside == Some(activity.started()) && !is_shutting_down => {
            ConnectionOutcome::Idle { stream, prefix: [&parts.read_buf[..], &unread[..]].concat() }
        }
        Ok(()) => ConnectionOutcome::Done { stream },
        Err(error) if error.is_timeout() => ConnectionOutcome::TooSlow { stream },
        Err(error) if error.is_parse() => ConnectionOutcome::Done { stream },
        Err(_) => ConnectionOutcome::Gone,
    }
}

fn step(
    connection: &mut Http,
    activity: &ConnectionActivity,
    was_idle: bool,
    context: &mut Context<'_>,
) -> Poll<ConnectionEvent> {
    if let Poll::Ready(result) = connection.poll_without_shutdown(context) {
        return Poll::Ready(ConnectionEvent::Ended(result));
    }
    match (was_idle, activity.is_idle()) {
        (false, true) => Poll::Ready(ConnectionEvent::BecameIdle),
        (true, false) => Poll::Ready(ConnectionEvent::BecameBusy),
        _ => Poll::Pending,
    }
}

#[derive(Default)]
pub(super) struct ConnectionActivity {
    started: AtomicU64,
    ended: AtomicU64,
    is_stalled: AtomicBool,
    /// What the connection goes on with after HTTP.
    upgrade: Mutex<Option<ConnectionUpgrade>>,
}

impl ConnectionActivity {
    pub(super) fn started(&self) -> u64 {
        self.started.load(Ordering::Acquire)
    }

    /// Whether there was a request, and none is under way, and the caller has taken every answer.
    pub(super) fn is_idle(&self) -> bool {
        let started = self.started();
        started > 0
            && self.ended.load(Ordering::Acquire) == started
            && !self.is_stalled.load(Ordering::Acquire)
    }

    /// What the connection goes on with, if both sides agreed on something else than HTTP.
    pub(super) fn take_upgrade(&self) -> Option<ConnectionUpgrade> {
        self.upgrade.lock().take()
    }

    /// Notes whether something waits to be taken by the caller.
    pub(super) fn set_stalled(&self, is_stalled: bool) {
        self.is_stalled.store(is_stalled, Ordering::Release);
    }
}

/// A request that is under way until this is dropped.
struct InFlightRequest(Arc<ConnectionActivity>);

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Release);
    }
}

pub(super) struct TrackedService {
    service: TowerToHyperService<Router>,
    peer: Peer,
    activity: Arc<ConnectionActivity>,
}

impl TrackedService {
    pub(super) fn new(router: Router, peer: Peer, activity: Arc<ConnectionActivity>) -> Self {
        Self { service: TowerToHyperService::new(router), peer, activity }
    }
}

impl Service<Request<Incoming>> for TrackedService {
    type Response = Response<TrackedBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        self.activity.started.fetch_add(1, Ordering::Release);
        let under_way = InFlightRequest(self.activity.clone());
        request.extensions_mut().insert(self.peer);
        let (answer, activity) = (self.service.call(request), self.activity.clone());
        Box::pin(async move {
            let mut answer = answer.await?;
            if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                let agreed = answer.extensions_mut().remove::<ConnectionUpgrade>();
                *activity.upgrade.lock() = agreed;
                // It is under way as long as the connection is: nobody may set it aside.
                activity.started.fetch_add(1, Ordering::Release);
            }
            Ok(answer.map(|body| TrackedBody { body, _under_way: under_way }))
        })
    }
}

/// A body whose end is the end of its request.
pub(super) struct TrackedBody {
    body: Body,
    _under_way: InFlightRequest,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
