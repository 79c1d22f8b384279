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
use super::parse_error_response;

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

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Network(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Local(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Network(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Local(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Network(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
            Self::Local(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Network(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Local(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

pub(super) struct HttpStream {
    stream: Stream,
    /// Read before hyper came, and what of it hyper has.
    prefix: Vec<u8>,
    consumed: usize,
    /// Our words in place of hyper's, and how many of them are written.
    replacement: Vec<u8>,
    written: usize,
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
        let (replacement, stalled) = (Vec::new(), None);
        Self { stream, prefix, consumed: 0, replacement, written: 0, stalled, write_timeout, activity }
    }

    /// The connection, and what hyper did not take of what was read before it came.
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

    fn poll_instead(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.replacement.len() {
            let outcome = Pin::new(&mut self.stream).poll_write(context, &self.replacement[self.written..]);
            match ready!(self.in_time(context, outcome))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.written += written,
            }
        }
        Poll::Ready(Ok(()))
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
        if let Some(status) = hyper_error_status(bytes) {
            self.replacement.extend(parse_error_response(status));
            return Poll::Ready(Ok(bytes.len()));
        }
        ready!(self.poll_instead(context))?;
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_instead(context))?;
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.in_time(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.in_time(context, outcome)
    }
}

/// The status of an answer that hyper gives by itself: nothing of ours has neither a body nor a type of one. Where such
/// an answer comes right after another in one write, it stays as it is.
fn hyper_error_status(bytes: &[u8]) -> Option<&[u8]> {
    let is_client_error = bytes.starts_with(b"HTTP/1.1 4") && bytes.ends_with(b"\r\n\r\n");
    let has = |line: &[u8]| bytes.windows(line.len()).any(|part| part == line);
    let is_bare = is_client_error && has(b"\r\ncontent-length: 0\r\n") && !has(b"\r\ncontent-type: ");
    is_bare.then(|| &bytes[9..12])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_response_generated_by_hyper_is_replaced() {
        let bare =
            b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(hyper_error_status(bare), Some(&b"431"[..]));
        for other in [
            &b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"[..],
            b"HTTP/1.1 401 Unauthorized\r\ncontent-type: application/problem+json\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"",
        ] {
            assert_eq!(hyper_error_status(other), None);
        }
    }
}
