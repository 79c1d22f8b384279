//! What goes on with a connection on which HTTP has ended, because both sides agreed on something else.

use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::stream::Stream;

/// Speaks on a connection until its end, or until the server stops. The bytes are what was read of it already.
type Conversation = Box<
    dyn FnOnce(Stream, Vec<u8>, watch::Receiver<bool>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send,
>;

/// Goes with an answer that says 101, as one of its extensions.
#[derive(Clone)]
pub(crate) struct Upgrade(Arc<Mutex<Option<Conversation>>>);

impl Upgrade {
    /// The connection goes on with `conversation` once the answer is sent.
    pub(crate) fn to<F>(
        conversation: impl FnOnce(Stream, Vec<u8>, watch::Receiver<bool>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let boxed: Conversation =
            Box::new(move |stream, begun, stop| Box::pin(conversation(stream, begun, stop)));
        Self(Arc::new(Mutex::new(Some(boxed))))
    }

    pub(super) async fn go_on(self, stream: Stream, begun: Vec<u8>, stop: watch::Receiver<bool>) {
        let conversation = self.0.lock().take();
        if let Some(conversation) = conversation {
            conversation(stream, begun, stop).await;
        }
    }
}
