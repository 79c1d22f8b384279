//! The task behind a [`super::RelayHandle`]: one WebSocket to the device for one client.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use tenure_control::CommandError;
use tenure_control::ownership::Permit;
use tenure_control::problem::{Problem, ProblemCode};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::device_tcp_stream::{DeviceWebSocket, closed_problem, next, outcome_unknown_problem};
use super::forward::wait_for_owner_change;
use super::{GatewayContext, InFlightGuard, request_id};
use crate::device_rules::is_for_tenure;

/// How long a farewell takes at most.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// One WebSocket to the device for one client.
pub(super) struct Relay {
    shared: Arc<GatewayContext>,
    identity: Arc<str>,
    messages: mpsc::Receiver<RelayedMessage>,
    to_client: mpsc::Sender<Message>,
    socket: Option<DeviceWebSocket>,
    /// Something that moves the device went over the line, and may still be on its way.
    in_flight: Option<InFlightGuard>,
    /// When a line that was lost is opened again: a client that listens needs it.
    reopen_at: Option<Instant>,
}

/// The client is gone, or as good as that.
struct ClientGone;

impl Relay {
    pub(super) fn new(
        shared: Arc<GatewayContext>,
        identity: Arc<str>,
        messages: mpsc::Receiver<RelayedMessage>,
        to_client: mpsc::Sender<Message>,
    ) -> Self {
        Self { shared, identity, messages, to_client, socket: None, in_flight: None, reopen_at: None }
    }

    /// The same, with a line from the beginning.
    pub(super) fn with_open_socket(self) -> Self {
        Self { reopen_at: Some(Instant::now()), ..self }
    }

    pub(super) async fn run(mut self) {
        let mut changes = self.shared.ownership.subscribe();
        loop {
            let reopen_at = self.reopen_at;
            let done = tokio::select! {
                biased;
                change = changes.changed() => match change {
                    Ok(()) => {
                        self.on_owner_change(&mut changes);
                        Ok(())
                    }
                    Err(_) => Err(ClientGone),
                },
                command = self.messages.recv() => match command {
                    Some(command) => self.forward(command, &mut changes).await,
                    None => return self.say_farewell(&mut changes).await,
                },
                message = next(&mut self.socket) => self.deliver(message),
                () = at(reopen_at) => {
                    self.reopen().await;
                    Ok(())
                }
            };
            if done.is_err() {
                return self.reset();
            }
        }
    }

    /// What this client sent before is void, unless it is the one whose hand it is now.
    fn on_owner_change(&mut self, changes: &mut watch::Receiver<u64>) {
        // Not looked at any longer than that: whoever tells of the next change waits until nobody looks, and has what the
        // question below needs.
        let now = *changes.borrow_and_update();
        if self.in_flight.as_ref().is_none_or(|ticket| ticket.epoch() == now) {
            return;
        }
        if self.shared.ownership.is_owner(&self.identity) {
            self.in_flight = Some(self.shared.in_flight.begin(now));
        } else {
            self.reset();
            self.reopen_at = Some(Instant::now());
        }
    }

    /// Nothing that is still on its way arrives; then nothing is on its way.
    fn reset(&mut self) {
        if let Some(line) = self.socket.take() {
            line.reset_handle.reset();
        }
        self.in_flight = None;
    }

    async fn forward(
        &mut self,
        command: RelayedMessage,
        changes: &mut watch::Receiver<u64>,
    ) -> Result<(), ClientGone> {
        let request_id = request_id(&command.message);
        match self.try_forward(command, changes).await {
            Ok(done) => done,
            Err(blocked) => {
                let error = self.shared.ownership.websocket_error(request_id.as_deref(), &blocked);
                self.send_to_client(Message::text(error))
            }
        }
    }

    async fn try_forward(
        &mut self,
        command: RelayedMessage,
        changes: &mut watch::Receiver<u64>,
    ) -> Result<Result<(), ClientGone>, CommandError> {
        let RelayedMessage { permit: pass, message } = command;
        self.on_owner_change(changes);
        if self.socket.is_none() {
            self.socket = Some(DeviceWebSocket::open(&self.shared).await?);
            self.reopen_at = None;
        }
        let generation = (!pass.is_unconditional()).then(|| pass.epoch());
        let command_slot = match generation {
            None => None,
            Some(generation) => {
                let slots = self.shared.command_slot.clone();
                let mut turn = pin!(slots.acquire_owned());
                loop {
                    tokio::select! {
                        biased;
                        () = wait_for_owner_change(changes, generation) => break None,
                        permit = &mut turn => break permit.ok(),
                        message = next(&mut self.socket) => if self.deliver(message).is_err() {
                            return Ok(Err(ClientGone));
                        },
                    }
                }
            }
        };
        // First the ticket, then the look: whoever changes hands in between waits for the ticket.
        if let Some(generation) = generation {
            let ticket = self.shared.in_flight.begin(generation);
            // Also where hands changed while the line was opened or the turn waited for: noted here, it is not seen
            // as a change again.
            self.on_owner_change(changes);
            self.shared.ownership.check_permit(pass)?;
            // Without a line nothing is on its way, and nobody is to wait for it.
            self.in_flight = self.socket.is_some().then_some(ticket);
        }
        let Some(line) = &mut self.socket else { return Err(closed_problem(&self.shared).into()) };
        // Also what only reads is given up, if something else that is still on its way has to be.
        let generation = self.in_flight.as_ref().map(InFlightGuard::epoch);
        let sent = tokio::select! {
            biased;
            () = ended(changes, generation) => None,
            sent = timeout(self.shared.timeouts.write, line.socket.send(message)) => Some(sent),
        };
        drop(command_slot);
        match sent {
            Some(Ok(Ok(()))) => Ok(Ok(())),
            Some(_) => {
                self.reset();
                self.reopen_at = Some(Instant::now() + self.shared.timeouts.reopen);
                Err(outcome_unknown_problem(&self.shared).into())
            }
            // Half a message is none, whoever has the lease now.
            None => {
                self.reset();
                self.reopen_at = Some(Instant::now());
                self.shared.ownership.check_permit(pass)?;
                Err(outcome_unknown_problem(&self.shared).into())
            }
        }
    }

    /// What the device says goes to the client.
    fn deliver(&mut self, message: Option<Result<Message, Error>>) -> Result<(), ClientGone> {
        match message {
            // In the lease's name only Tenure speaks.
            Some(Ok(Message::Text(text))) if is_for_tenure(&text) => Ok(()),
            Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => self.send_to_client(message),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(()),
            Some(Ok(Message::Close(_)) | Err(_)) | None => {
                // It may still read what it was sent, and whoever is next must not have to wonder.
                if self.in_flight.is_some() {
                    self.reset();
                }
                self.socket = None;
                self.reopen_at = Some(Instant::now() + self.shared.timeouts.reopen);
                Ok(())
            }
        }
    }

    /// A client that takes too little has had its chance: nobody else waits for it.
    fn send_to_client(&self, message: Message) -> Result<(), ClientGone> {
        self.to_client.try_send(message).map_err(|_| ClientGone)
    }

    async fn reopen(&mut self) {
        self.socket = DeviceWebSocket::open(&self.shared).await.ok();
        let again = Instant::now() + self.shared.timeouts.reopen;
        self.reopen_at = self.socket.is_none().then_some(again);
    }

    /// Ends it in good order. What was sent before is on its way until the device has hung up, too: it answers a farewell
    /// when it has read all that came before it.
    async fn say_farewell(mut self, changes: &mut watch::Receiver<u64>) {
        let generation = self.in_flight.as_ref().map(InFlightGuard::epoch);
        let Some(line) = &mut self.socket else { return };
        let farewell = async {
            let _ = line.socket.close(None).await;
            while let Some(Ok(_)) = line.socket.next().await {}
        };
        let is_cut = tokio::select! {
            biased;
            () = ended(changes, generation) => true,
            closed = timeout(CLOSE_TIMEOUT, farewell) => closed.is_err(),
        };
        if is_cut {
            self.reset();
        }
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// Waits for the end of this generation; of none, for ever.
async fn ended(changes: &mut watch::Receiver<u64>, generation: Option<u64>) {
    match generation {
        Some(generation) => wait_for_owner_change(changes, generation).await,
        None => std::future::pending().await,
    }
}

/// How many messages of one client wait for the device.
const MAX_PENDING_MESSAGES: usize = 32;

/// A client's way to the device. Dropped, it ends once what was taken is sent.
pub struct RelayHandle {
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
    pub fn send(&mut self, pass: Permit, message: Message) -> Result<(), CommandError> {
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
