//! One connection, from its first byte to its last.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1::{Builder, Connection};
use hyper::service::Service;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use tenure_api::{Code, Problem};
use tokio::io::AsyncReadExt as _;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::http_stream::{HttpStream, Peer, Stream};
use super::{ConnectionUpgrade, lingering_close, reject};
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
            ConnectionOutcome::Rejected { stream, problem } => return reject(stream, &problem).await,
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
    /// The bytes are not a request, or its header was not complete in time.
    Rejected {
        stream: Stream,
        problem: Box<Problem>,
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
        Err(error) => match problem_of(&error) {
            Some(problem) => ConnectionOutcome::Rejected { stream, problem: Box::new(problem) },
            None => ConnectionOutcome::Gone,
        },
    }
}

/// The response to bytes that hyper does not read as a request. `None` if the connection failed.
fn problem_of(error: &hyper::Error) -> Option<Problem> {
    let (code, detail) = if error.is_timeout() {
        (Code::TooSlow, "the header was not complete within 5 s of its first byte; send it again")
    } else if error.is_parse_too_large() {
        (Code::HeaderTooLarge, "the request's line and headers have at most 32 KiB and 100 headers")
    } else if error.is_parse() {
        (Code::Invalid, "this is not HTTP/1.1 as we read it; nothing was looked at")
    } else {
        return None;
    };
    Some(Problem::new(code, detail))
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
        started > 0 && self.ended() == started && !self.is_stalled.load(Ordering::Acquire)
    }

    pub(super) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
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
        let expects_continue = request.headers().contains_key(header::EXPECT);
        let (sender, mut unread) = oneshot::channel();
        let request = request.map(|body| {
            let unread = (!body.is_end_stream()).then_some(sender);
            RequestBody { body: Some(body), unread }
        });
        let (answer, activity) = (self.service.call(request), self.activity.clone());
        Box::pin(async move {
            let mut answer = answer.await?;
            let is_read = match unread.try_recv() {
                Ok(Some(body)) => !expects_continue && discard(body).await,
                Ok(None) | Err(TryRecvError::Empty) => false,
                Err(TryRecvError::Closed) => true,
            };
            if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                let agreed = answer.extensions_mut().remove::<ConnectionUpgrade>();
                *activity.upgrade.lock() = agreed;
                // It is under way as long as the connection is: nobody may set it aside.
                activity.started.fetch_add(1, Ordering::Release);
            } else if !is_read {
                answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(answer.map(|body| TrackedBody { body, _under_way: under_way }))
        })
    }
}

/// Largest rest of a body that is read after the response is known, and longest time for it.
const MAX_DISCARDED_BYTES: usize = 1 << 20;
const DISCARD_TIMEOUT: Duration = Duration::from_secs(1);

/// Reads the rest of a body, so that the client can read the response and the connection can carry the next request.
/// `false` if the rest is too large, too slow or invalid.
async fn discard(mut body: Incoming) -> bool {
    let is_small = body.size_hint().lower() <= MAX_DISCARDED_BYTES as u64;
    let all = async {
        let mut discarded = 0;
        while discarded <= MAX_DISCARDED_BYTES {
            match body.frame().await {
                None => return true,
                Some(Ok(frame)) => discarded += frame.data_ref().map_or(0, Bytes::len),
                Some(Err(_)) => return false,
            }
        }
        false
    };
    is_small && timeout(DISCARD_TIMEOUT, all).await.unwrap_or(false)
}

/// The body of a request.
struct RequestBody {
    /// `None` after an error.
    body: Option<Incoming>,
    /// Receives the body if the handler drops it before its end.
    unread: Option<oneshot::Sender<Option<Incoming>>>,
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(&mut *body).poll_frame(context));
        if matches!(frame, Some(Err(_))) {
            self.body = None;
        } else if frame.is_none() || body.is_end_stream() {
            self.unread = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Incoming::size_hint).unwrap_or_default()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Some(unread) = self.unread.take() {
            let _ = unread.send(self.body.take());
        }
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
