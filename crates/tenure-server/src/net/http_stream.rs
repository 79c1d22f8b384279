//! The byte stream of a connection, and its peer.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Sleep, sleep};
use tokio_rustls::server::TlsStream;

use super::connection::ConnectionActivity;

/// Who is at the other end. Every request carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Somebody who must say who speaks.
    Network {
        /// From where, if that is known.
        address: Option<IpAddr>,
    },
    /// A process of this machine; the system says whose.
    Local {
        uid: u32,
        /// The process that connected, where the system says it.
        pid: Option<u32>,
    },
}

/// A connection that was just made.
pub(super) struct AcceptedConnection {
    pub(super) stream: Stream,
    pub(super) peer: Peer,
    /// Whether it has to begin with a handshake.
    pub(super) is_tls: bool,
}

pub(crate) enum Stream {
    Network(TcpStream),
    /// In a box, because most connections are not like this, and it is large.
    Tls(Box<TlsStream<TcpStream>>),
    Local(UnixStream),
}

trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Duplex for S {}

impl Stream {
    fn as_duplex(self: Pin<&mut Self>) -> Pin<&mut dyn Duplex> {
        match self.get_mut() {
            Self::Network(stream) => Pin::new(stream),
            Self::Tls(stream) => Pin::new(stream),
            Self::Local(stream) => Pin::new(stream),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.as_duplex().poll_read(context, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.as_duplex().poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.as_duplex().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.as_duplex().poll_shutdown(context)
    }
}

pub(super) struct HttpStream {
    stream: Stream,
    /// Bytes read before hyper was started, and how many of them hyper has taken.
    prefix: Vec<u8>,
    consumed: usize,
    /// Number of requests whose responses were flushed.
    flushed: u64,
    stalled: Option<Pin<Box<Sleep>>>,
    /// How long it may be stalled.
    write_timeout: Duration,
    activity: Arc<ConnectionActivity>,
}

impl HttpStream {
    pub(super) fn new(
        stream: Stream,
        prefix: Vec<u8>,
        write_timeout: Duration,
        activity: Arc<ConnectionActivity>,
    ) -> Self {
        Self { stream, prefix, consumed: 0, flushed: 0, stalled: None, write_timeout, activity }
    }

    /// Returns the connection, and the bytes of the prefix that hyper did not take.
    pub(super) fn into_parts(self) -> (Stream, Vec<u8>) {
        let mut prefix = self.prefix;
        prefix.drain(..self.consumed);
        (self.stream, prefix)
    }

    /// The outcome of a write, unless it has waited for too long.
    fn in_time<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.activity.set_stalled(outcome.is_pending());
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let unread = self.write_timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(unread)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for HttpStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = &self.prefix[self.consumed..];
        if rest.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let length = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..length]);
        self.consumed += length;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for HttpStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // Hyper reads a request when the response before it is flushed. So these bytes are an error response of hyper,
        // in whose place the connection sends a problem.
        if self.flushed == self.activity.started() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        if outcome.is_ready() {
            self.flushed = self.activity.ended();
        }
        self.in_time(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.in_time(context, outcome)
    }
}
