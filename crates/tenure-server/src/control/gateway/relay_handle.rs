//! A client's WebSocket to the device, as its session sees it.

use std::sync::Arc;

use tenure_control::ownership::Permit;
use tenure_control::problem::{Problem, ProblemCode};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_tungstenite::tungstenite::Message;

use super::relay::Relay;
use super::{CommandError, GatewayContext};

/// How many messages of one client wait for the device.
const MAX_PENDING_MESSAGES: usize = 32;

/// A client's way to the device. Dropped, it ends once what was taken is sent.
pub(crate) struct RelayHandle {
    shared: Arc<GatewayContext>,
    commands: mpsc::Sender<RelayedMessage>,
}

/// A message and what lets it through.
pub(super) struct RelayedMessage {
    pub(super) permit: Permit,
    pub(super) message: Message,
}

impl RelayHandle {
    /// A way to the device that is opened with the first message.
    #[cfg(test)]
    pub(super) fn open_on_demand(
        shared: Arc<GatewayContext>,
        identity: Arc<str>,
        to_client: mpsc::Sender<Message>,
    ) -> Self {
        Self::with(shared, identity, to_client, |relay| relay)
    }

    pub(super) fn open(
        shared: Arc<GatewayContext>,
        identity: Arc<str>,
        to_client: mpsc::Sender<Message>,
    ) -> Self {
        Self::with(shared, identity, to_client, Relay::with_open_socket)
    }

    fn with(
        shared: Arc<GatewayContext>,
        identity: Arc<str>,
        to_client: mpsc::Sender<Message>,
        change: impl FnOnce(Relay) -> Relay,
    ) -> Self {
        let (commands, received) = mpsc::channel(MAX_PENDING_MESSAGES);
        tokio::spawn(change(Relay::new(shared.clone(), identity, received, to_client)).run());
        Self { shared, commands }
    }

    /// Passes a message on, in the order in which they come. It waits for nobody: a session has heartbeats to hear.
    ///
    /// Taken is not obeyed: before it goes out, its pass is looked at again. What fails then is told to the client as
    /// an error of its own.
    pub(crate) fn send(&mut self, pass: Permit, message: Message) -> Result<(), CommandError> {
        if !matches!(message, Message::Text(_) | Message::Binary(_)) {
            return Ok(());
        }
        self.shared.ownership.check_permit(pass)?;
        self.commands.try_send(RelayedMessage { permit: pass, message }).map_err(|error| match error {
            TrySendError::Full(_) => {
                let detail = format!(
                    "{MAX_PENDING_MESSAGES} messages of this connection wait for the device; send fewer"
                );
                Problem::new(ProblemCode::Busy, detail).into()
            }
            TrySendError::Closed(_) => {
                let detail =
                    "this connection took too little of what the device said, and is ending; open another";
                Problem::new(ProblemCode::Unavailable, detail).into()
            }
        })
    }
}
