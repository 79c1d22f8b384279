//! Where requests go in, and what callers can ask without waiting.

use std::sync::Arc;

use tenure_core::kernel::{Command, CommandOutcome, Fence};
use tenure_ledger::signing::{LedgerId, LedgerSigningKey, Passport};

use super::clock::Clock;
use super::inbox::{Inbox, Response};
use super::pending_replies::{WaitListener, WaitListeners};
use super::proof;
use super::view::StateView;
use crate::registrar::Reply;

/// Where requests go in. It can be cloned and shared.
#[derive(Clone)]
pub struct Handle {
    pub(super) inbox: Arc<Inbox>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) max_waiting: usize,
    pub(super) ledger: LedgerId,
    pub(super) key: Arc<LedgerSigningKey>,
    pub(super) view: Arc<StateView>,
    pub(super) waiters: Arc<WaitListeners>,
}

impl Handle {
    /// Asks. `respond` is called once, on the writer's thread or, when there is no room, on this one. There is room for
    /// longer for whoever renews, gives back or leaves than for whoever wants something new.
    pub fn submit(&self, command: Command, respond: impl FnOnce(Response) + Send + 'static) {
        let max_waiting = max_waiting_for(&command, self.max_waiting);
        self.inbox.push(&*self.clock, command, max_waiting, Box::new(respond));
    }

    /// Asks for something that may have to wait. `respond` is called as by [`Self::submit`]; if it is told that the request
    /// waits in line, `over` is told once that is over. It is dropped untold when nobody can tell any more, because
    /// the writer has ended.
    pub fn submit_queued(
        &self,
        command: Command,
        respond: impl FnOnce(Response) + Send + 'static,
        listener: impl WaitListener + 'static,
    ) {
        let waiters = self.waiters.clone();
        self.submit(command, move |response| {
            // Here and not later: whose turn has come is told right after the answers.
            if let Reply::Answered { answer: CommandOutcome::Queued { ticket, .. }, .. } = &response.reply {
                waiters.add(*ticket, Box::new(listener));
            }
            respond(response);
        });
    }

    /// Asks, and waits for the response.
    pub fn submit_and_wait(&self, command: Command) -> Response {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.submit(command, move |response| drop(sender.send(response)));
        // The writer answers everybody before it ends; if it was killed, nobody knows.
        receiver.recv().unwrap_or(Reply::OutcomeUnknown.into())
    }

    /// What a holder can show to others of a lease that it was just granted, or renewed, or told of again.
    pub fn passport(&self, response: &Response, fence: Fence) -> Option<Passport> {
        let proof = response.proof.as_deref();
        self.view.read(|state| proof::passport(proof, self.ledger, &self.key, fence, state))
    }

    /// How many requests wait to be decided.
    pub fn inbox_depth(&self) -> usize {
        self.inbox.depth()
    }

    pub fn ledger(&self) -> LedgerId {
        self.ledger
    }

    /// What can be read without asking.
    pub fn view(&self) -> &Arc<StateView> {
        &self.view
    }

    /// Makes the writer look whether there is room again.
    pub(crate) fn wake(&self) {
        self.inbox.wake();
    }
}

/// How much may wait before this command is refused. A crowd that wants something new must not keep out who holds
/// something already: a renewal that is refused is a lease lost, and a release that is refused lets nobody in.
fn max_waiting_for(command: &Command, max_waiting: usize) -> usize {
    match command {
        Command::Acquire(_) => max_waiting - max_waiting / 4,
        _ => max_waiting,
    }
}
