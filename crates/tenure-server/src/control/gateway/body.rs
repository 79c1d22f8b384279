//! Bodies on their way through: a piece at a time, and none is kept.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

#[derive(Clone)]
pub(super) struct Progress(Arc<Mutex<Reached>>);

struct Reached {
    /// When a piece was sent last.
    at: Instant,
    /// Whether the next piece has to come from the client.
    needs_client: bool,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Reached { at: Instant::now(), needs_client: false })))
    }

    fn note(&self, needs_client: bool, is_piece: bool) {
        let mut reached = self.0.lock();
        reached.needs_client = needs_client;
        if is_piece {
            reached.at = Instant::now();
        }
    }

    /// Waits until nothing was sent for this long. The answer is whether that is the client's fault.
    pub(super) async fn stalled(&self, patience: Duration) -> bool {
        loop {
            let end = self.0.lock().at + patience;
            sleep_until(end).await;
            let reached = self.0.lock();
            if reached.at + patience <= Instant::now() {
                return reached.needs_client;
            }
        }
    }
}

/// A turn to move the device, shared by those who have to be done before it is the next one's.
pub(super) type Turn = Arc<OwnedSemaphorePermit>;

/// A request's body, as it goes to the device.
pub(super) struct Sent {
    body: Body,
    progress: Progress,
    _turn: Option<Turn>,
}

impl Sent {
    pub(super) fn new(body: Body, progress: Progress, turn: Option<Turn>) -> Self {
        Self { body, progress, _turn: turn }
    }
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let outcome = Pin::new(&mut self.body).poll_frame(context);
        self.progress.note(outcome.is_pending(), outcome.is_ready());
        outcome
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Somebody still wants the answer. Dropped, nobody does, and the connection is cut.
pub(super) struct Interest(Option<oneshot::Sender<()>>);

impl Interest {
    pub(super) fn new() -> (Self, oneshot::Receiver<()>) {
        let (sender, receiver) = oneshot::channel();
        (Self(Some(sender)), receiver)
    }

    fn is_met(&mut self) {
        if let Some(sender) = self.0.take() {
            let _ = sender.send(());
        }
    }
}

/// The body of the device's answer, as it goes to the client.
pub(super) struct Answered {
    body: Incoming,
    interest: Interest,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Answered {
    pub(super) fn new(body: Incoming, interest: Interest, patience: Duration) -> Self {
        Self { body, interest, patience, waiting: None }
    }
}

impl HttpBody for Answered {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(None) => {
                self.interest.is_met();
                Poll::Ready(None)
            }
            Poll::Ready(Some(frame)) => {
                self.waiting = None;
                Poll::Ready(Some(frame.map_err(io::Error::other)))
            }
            Poll::Pending => {
                let patience = self.patience;
                let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
                waiting.as_mut().poll(context).map(|()| Some(Err(io::ErrorKind::TimedOut.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answered {
    fn drop(&mut self) {
        // Nobody asks for the end of a body whose length was announced.
        if self.body.is_end_stream() {
            self.interest.is_met();
        }
    }
}
