//! A client's WebSocket to the device, as its session sees it.

use std::sync::Arc;

use tenure_control::hand::Pass;
use tenure_control::problem::{Problem, ProblemCode};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_tungstenite::tungstenite::Message;

use super::relay::Relay;
use super::{Blocked, Shared};

/// How many messages of one client wait for the device.
const MOST_WAITING: usize = 32;

/// A client's way to the device. Dropped, it ends once what was taken is sent.
pub(crate) struct Link {
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
}

/// A message and what lets it through.
pub(super) struct Command {
    pub(super) pass: Pass,
    pub(super) message: Message,
}

impl Link {
    /// A way to the device that is opened with the first message.
    #[cfg(test)]
    pub(super) fn open(shared: Arc<Shared>, identity: Arc<str>, to_client: mpsc::Sender<Message>) -> Self {
        Self::with(shared, identity, to_client, |relay| relay)
    }

    pub(super) fn listen(shared: Arc<Shared>, identity: Arc<str>, to_client: mpsc::Sender<Message>) -> Self {
        Self::with(shared, identity, to_client, Relay::listening)
    }

    fn with(
        shared: Arc<Shared>,
        identity: Arc<str>,
        to_client: mpsc::Sender<Message>,
        change: impl FnOnce(Relay) -> Relay,
    ) -> Self {
        let (commands, taken) = mpsc::channel(MOST_WAITING);
        tokio::spawn(change(Relay::new(shared.clone(), identity, taken, to_client)).run());
        Self { shared, commands }
    }

    /// Passes a message on, in the order in which they come. It waits for nobody: a session has heartbeats to hear.
    ///
    /// Taken is not obeyed: before it goes out, its pass is looked at again. What fails then is told to the client as
    /// an error of its own.
    pub(crate) fn send(&mut self, pass: Pass, message: Message) -> Result<(), Blocked> {
        if !matches!(message, Message::Text(_) | Message::Binary(_)) {
            return Ok(());
        }
        self.shared.hands.still_counts(pass)?;
        self.commands.try_send(Command { pass, message }).map_err(|error| match error {
            TrySendError::Full(_) => {
                let detail =
                    format!("{MOST_WAITING} messages of this connection wait for the device; send fewer");
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
