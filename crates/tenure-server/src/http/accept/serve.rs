//! Hyper on one connection, for as long as requests come.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::http1::{Builder, Connection};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::connection::ConnectionContext;
use super::http_stream::HttpStream;
use super::limits::ConnectionUpgrade;
use super::stream::{Peer, Stream};
use super::tracked_service::{ConnectionActivity, TrackedService};

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
