//! What hyper reads from and writes to: a connection with the bytes that were read before hyper came, with a limit on
//! how long a write may wait for its reader, and with problems in place of hyper's own refusals.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::refuse::in_place_of;
use super::stream::Stream;
use super::tracked::Activity;

pub(super) struct Guarded {
    stream: Stream,
    /// Read before hyper came, and what of it hyper has.
    begun: Vec<u8>,
    given: usize,
    /// Our words in place of hyper's, and how many of them are written.
    instead: Vec<u8>,
    written: usize,
    stalled: Option<Pin<Box<Sleep>>>,
    /// How long it may be stalled.
    unread: Duration,
    activity: Arc<Activity>,
}

impl Guarded {
    pub(super) fn new(stream: Stream, begun: Vec<u8>, unread: Duration, activity: Arc<Activity>) -> Self {
        let (instead, stalled) = (Vec::new(), None);
        Self { stream, begun, given: 0, instead, written: 0, stalled, unread, activity }
    }

    /// The connection, and what hyper did not take of what was read before it came.
    pub(super) fn into_parts(self) -> (Stream, Vec<u8>) {
        let mut begun = self.begun;
        begun.drain(..self.given);
        (self.stream, begun)
    }

    /// The outcome of a write, unless it has waited for too long.
    fn in_time<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.activity.set_stalled(outcome.is_pending());
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let unread = self.unread;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(unread)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn poll_instead(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.instead.len() {
            let outcome = Pin::new(&mut self.stream).poll_write(context, &self.instead[self.written..]);
            match ready!(self.in_time(context, outcome))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.written += written,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = &self.begun[self.given..];
        if left.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let length = left.len().min(buffer.remaining());
        buffer.put_slice(&left[..length]);
        self.given += length;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(status) = own_refusal(bytes) {
            self.instead.extend(in_place_of(status));
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
fn own_refusal(bytes: &[u8]) -> Option<&[u8]> {
    let is_refusal = bytes.starts_with(b"HTTP/1.1 4") && bytes.ends_with(b"\r\n\r\n");
    let has = |line: &[u8]| bytes.windows(line.len()).any(|part| part == line);
    let is_bare = is_refusal && has(b"\r\ncontent-length: 0\r\n") && !has(b"\r\ncontent-type: ");
    is_bare.then(|| &bytes[9..12])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_response_generated_by_hyper_is_replaced() {
        let bare =
            b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(own_refusal(bare), Some(&b"431"[..]));
        for other in [
            &b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"[..],
            b"HTTP/1.1 401 Unauthorized\r\ncontent-type: application/problem+json\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"",
        ] {
            assert_eq!(own_refusal(other), None);
        }
    }
}
