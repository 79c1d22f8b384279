//! The task behind a [`super::Link`]: one WebSocket to the device for one client.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use tenure_control::gateway::is_for_tenure;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::flight::Ticket;
use super::forward::changed;
use super::line::{Line, lost, next, unknown};
use super::link::Command;
use super::{Blocked, Shared, answer};

/// How long a farewell takes at most.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// One WebSocket to the device for one client.
pub(super) struct Relay {
    shared: Arc<Shared>,
    identity: Arc<str>,
    commands: mpsc::Receiver<Command>,
    to_client: mpsc::Sender<Message>,
    line: Option<Line>,
    /// Something that moves the device went over the line, and may still be on its way.
    carried: Option<Ticket>,
    /// When a line that was lost is opened again: a client that listens needs it.
    reopen_at: Option<Instant>,
}

/// The client is gone, or as good as that.
struct Over;

impl Relay {
    pub(super) fn new(
        shared: Arc<Shared>,
        identity: Arc<str>,
        commands: mpsc::Receiver<Command>,
        to_client: mpsc::Sender<Message>,
    ) -> Self {
        Self { shared, identity, commands, to_client, line: None, carried: None, reopen_at: None }
    }

    /// The same, with a line from the beginning.
    pub(super) fn listening(self) -> Self {
        Self { reopen_at: Some(Instant::now()), ..self }
    }

    pub(super) async fn run(mut self) {
        let mut changes = self.shared.hands.changes();
        loop {
            let reopen_at = self.reopen_at;
            let done = tokio::select! {
                biased;
                change = changes.changed() => match change {
                    Ok(()) => {
                        self.hands_changed(&mut changes);
                        Ok(())
                    }
                    Err(_) => Err(Over),
                },
                command = self.commands.recv() => match command {
                    Some(command) => self.carry(command, &mut changes).await,
                    None => return self.say_farewell(&mut changes).await,
                },
                message = next(&mut self.line) => self.deliver(message),
                () = at(reopen_at) => {
                    self.reopen().await;
                    Ok(())
                }
            };
            if done.is_err() {
                return self.cut();
            }
        }
    }

    /// What this client sent before is void, unless it is the one whose hand it is now.
    fn hands_changed(&mut self, changes: &mut watch::Receiver<u64>) {
        // Not looked at any longer than that: whoever tells of the next change waits until nobody looks, and has what the
        // question below needs.
        let now = *changes.borrow_and_update();
        if self.carried.as_ref().is_none_or(|ticket| ticket.generation() == now) {
            return;
        }
        if self.shared.hands.owns(&self.identity) {
            self.carried = Some(self.shared.flight.begin(now));
        } else {
            self.cut();
            self.reopen_at = Some(Instant::now());
        }
    }

    /// Nothing that is still on its way arrives; then nothing is on its way.
    fn cut(&mut self) {
        if let Some(line) = self.line.take() {
            line.scissors.cut();
        }
        self.carried = None;
    }

    async fn carry(&mut self, command: Command, changes: &mut watch::Receiver<u64>) -> Result<(), Over> {
        let request_id = answer::request_id(&command.message);
        match self.try_carry(command, changes).await {
            Ok(done) => done,
            Err(blocked) => self.tell(answer::on_websocket(&blocked, request_id)),
        }
    }

    async fn try_carry(
        &mut self,
        command: Command,
        changes: &mut watch::Receiver<u64>,
    ) -> Result<Result<(), Over>, Blocked> {
        let Command { pass, message } = command;
        self.hands_changed(changes);
        if self.line.is_none() {
            self.line = Some(Line::open(&self.shared).await?);
            self.reopen_at = None;
        }
        let generation = (!pass.is_free()).then(|| pass.generation());
        let turn = match generation {
            None => None,
            Some(generation) => {
                let turns = self.shared.turns.clone();
                let mut turn = pin!(turns.acquire_owned());
                loop {
                    tokio::select! {
                        biased;
                        () = changed(changes, generation) => break None,
                        permit = &mut turn => break permit.ok(),
                        message = next(&mut self.line) => if self.deliver(message).is_err() {
                            return Ok(Err(Over));
                        },
                    }
                }
            }
        };
        // First the ticket, then the look: whoever changes hands in between waits for the ticket.
        if let Some(generation) = generation {
            let ticket = self.shared.flight.begin(generation);
            // Also where hands changed while the line was opened or the turn waited for: noted here, it is not seen
            // as a change again.
            self.hands_changed(changes);
            self.shared.hands.still_counts(pass)?;
            // Without a line nothing is on its way, and nobody is to wait for it.
            self.carried = self.line.is_some().then_some(ticket);
        }
        let Some(line) = &mut self.line else { return Err(lost(&self.shared).into()) };
        // Also what only reads is given up, if something else that is still on its way has to be.
        let generation = self.carried.as_ref().map(Ticket::generation);
        let sent = tokio::select! {
            biased;
            () = ended(changes, generation) => None,
            sent = timeout(self.shared.patience.write, line.socket.send(message)) => Some(sent),
        };
        drop(turn);
        match sent {
            Some(Ok(Ok(()))) => Ok(Ok(())),
            Some(_) => {
                self.cut();
                self.reopen_at = Some(Instant::now() + self.shared.patience.reopen);
                Err(unknown(&self.shared).into())
            }
            // Half a message is none, whoever has the lease now.
            None => {
                self.cut();
                self.reopen_at = Some(Instant::now());
                self.shared.hands.still_counts(pass)?;
                Err(unknown(&self.shared).into())
            }
        }
    }

    /// What the device says goes to the client.
    fn deliver(&mut self, message: Option<Result<Message, Error>>) -> Result<(), Over> {
        match message {
            // In the lease's name only Tenure speaks.
            Some(Ok(Message::Text(text))) if is_for_tenure(&text) => Ok(()),
            Some(Ok(message @ (Message::Text(_) | Message::Binary(_)))) => self.tell(message),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(()),
            Some(Ok(Message::Close(_)) | Err(_)) | None => {
                // It may still read what it was sent, and whoever is next must not have to wonder.
                if self.carried.is_some() {
                    self.cut();
                }
                self.line = None;
                self.reopen_at = Some(Instant::now() + self.shared.patience.reopen);
                Ok(())
            }
        }
    }

    /// A client that takes too little has had its chance: nobody else waits for it.
    fn tell(&self, message: Message) -> Result<(), Over> {
        self.to_client.try_send(message).map_err(|_| Over)
    }

    async fn reopen(&mut self) {
        self.line = Line::open(&self.shared).await.ok();
        let again = Instant::now() + self.shared.patience.reopen;
        self.reopen_at = self.line.is_none().then_some(again);
    }

    /// Ends it in good order. What was sent before is on its way until the device has hung up, too: it answers a farewell
    /// when it has read all that came before it.
    async fn say_farewell(mut self, changes: &mut watch::Receiver<u64>) {
        let generation = self.carried.as_ref().map(Ticket::generation);
        let Some(line) = &mut self.line else { return };
        let farewell = async {
            let _ = line.socket.close(None).await;
            while let Some(Ok(_)) = line.socket.next().await {}
        };
        let is_cut = tokio::select! {
            biased;
            () = ended(changes, generation) => true,
            closed = timeout(CLOSE_TIME, farewell) => closed.is_err(),
        };
        if is_cut {
            self.cut();
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
        Some(generation) => changed(changes, generation).await,
        None => std::future::pending().await,
    }
}
