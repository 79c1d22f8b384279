//! A few connections that are kept.

use std::io;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;

use super::endpoint::Endpoint;
use crate::clock::boot_microseconds;

pub(crate) type RequestSender = SendRequest<Full<Bytes>>;

/// A server closes a connection that is not used for 75 s, unless it is configured otherwise. One that is nearly there is
/// not used any more, so that no request meets the closing on its way.
const MAX_IDLE: u64 = 60_000_000;
/// The most connections that are kept. More are opened while they are needed.
const MAX_IDLE_CONNECTIONS: usize = 4;
/// How long a connection may take to come about, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections that nobody uses just now.
#[derive(Default)]
pub(crate) struct ConnectionPool {
    idle: Mutex<Vec<(RequestSender, u64)>>,
}

impl ConnectionPool {
    /// One that was used before, if there is any.
    pub(crate) async fn take(&self) -> Option<RequestSender> {
        loop {
            let (mut sender, since) = self.idle.lock().pop()?;
            let is_recent = boot_microseconds().saturating_sub(since) < MAX_IDLE;
            if is_recent && !sender.is_closed() && sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    /// Keeps it for the next request.
    pub(crate) fn put(&self, sender: RequestSender) {
        let mut idle = self.idle.lock();
        if sender.is_closed() || idle.len() >= MAX_IDLE_CONNECTIONS {
            return;
        }
        idle.push((sender, boot_microseconds()));
    }
}

/// A new connection.
pub(crate) async fn connect(endpoint: &Endpoint) -> io::Result<RequestSender> {
    let connecting = async {
        let stream = endpoint.connect().await?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(io::Error::other)?;
        // It ends by itself: when the server closes it, or when nobody has its sender any more.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(sender)
    };
    let timeout_error = || {
        io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()),
        )
    };
    tokio::time::timeout(CONNECT_TIMEOUT, connecting).await.unwrap_or_else(|_| Err(timeout_error()))
}
