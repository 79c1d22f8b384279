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
pub(super) struct BodyProgress(Arc<Mutex<BodyProgressState>>);

struct BodyProgressState {
    /// When a piece was sent last.
    at: Instant,
    /// Whether the next piece has to come from the client.
    awaits_client: bool,
}

impl BodyProgress {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(BodyProgressState { at: Instant::now(), awaits_client: false })))
    }

    fn record(&self, awaits_client: bool, is_piece: bool) {
        let mut reached = self.0.lock();
        reached.awaits_client = awaits_client;
        if is_piece {
            reached.at = Instant::now();
        }
    }

    /// Waits until nothing was sent for this long. The answer is whether that is the client's fault.
    pub(super) async fn wait_for_stall(&self, patience: Duration) -> bool {
        loop {
            let end = self.0.lock().at + patience;
            sleep_until(end).await;
            let reached = self.0.lock();
            if reached.at + patience <= Instant::now() {
                return reached.awaits_client;
            }
        }
    }
}

/// A turn to move the device, shared by those who have to be done before it is the next one's.
pub(super) type CommandSlot = Arc<OwnedSemaphorePermit>;

/// A request's body, as it goes to the device.
pub(super) struct ForwardedBody {
    body: Body,
    progress: BodyProgress,
    _turn: Option<CommandSlot>,
}

impl ForwardedBody {
    pub(super) fn new(body: Body, progress: BodyProgress, turn: Option<CommandSlot>) -> Self {
        Self { body, progress, _turn: turn }
    }
}

impl HttpBody for ForwardedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let outcome = Pin::new(&mut self.body).poll_frame(context);
        self.progress.record(outcome.is_pending(), outcome.is_ready());
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
pub(super) struct ResetOnDrop(Option<oneshot::Sender<()>>);

impl ResetOnDrop {
    pub(super) fn new() -> (Self, oneshot::Receiver<()>) {
        let (sender, receiver) = oneshot::channel();
        (Self(Some(sender)), receiver)
    }

    fn disarm(&mut self) {
        if let Some(sender) = self.0.take() {
            let _ = sender.send(());
        }
    }
}

/// The body of the device's answer, as it goes to the client.
pub(super) struct DeviceResponseBody {
    body: Incoming,
    cut_on_drop: ResetOnDrop,
    timeout: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl DeviceResponseBody {
    pub(super) fn new(body: Incoming, cut_on_drop: ResetOnDrop, timeout: Duration) -> Self {
        Self { body, cut_on_drop, timeout, timer: None }
    }
}

impl HttpBody for DeviceResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(None) => {
                self.cut_on_drop.disarm();
                Poll::Ready(None)
            }
            Poll::Ready(Some(frame)) => {
                self.timer = None;
                Poll::Ready(Some(frame.map_err(io::Error::other)))
            }
            Poll::Pending => {
                let patience = self.timeout;
                let waiting = self.timer.get_or_insert_with(|| Box::pin(sleep(patience)));
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

impl Drop for DeviceResponseBody {
    fn drop(&mut self) {
        // Nobody asks for the end of a body whose length was announced.
        if self.body.is_end_stream() {
            self.cut_on_drop.disarm();
        }
    }
}
