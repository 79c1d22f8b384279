//! Acquires leases, and waits for them in the queue.
//!
//! Each grant comes with a drop guard ([`RevokeOnDrop`]). So it does not matter where a request ends whose caller
//! hung up: before its response, in the queue, or between the grant and the response.

#[cfg(test)]
pub(crate) mod tests;

use tenure_core::kernel::{Acquire, Command, CommandOutcome, Fence, Principal, Tick, Ticket, WaitEnd};
use tenure_registrar::Reply;
use tenure_registrar::runtime::{Response, WaitListener, WaitOutcome};
use tokio::sync::oneshot;

use super::RegistrarHandle;
use super::retry_queue::{GrantRecipient, RevokeOnDrop};

/// The outcome of a request for leases.
pub(crate) enum AcquireOutcome {
    Granted(PendingGrant),
    Queued(QueuedRequest),
    NotGranted(Reply),
}

/// Granted leases that the caller does not know of yet.
pub(crate) struct PendingGrant {
    /// Their numbers, in the order asked for.
    pub(crate) leases: Vec<Fence>,
    /// When the caller's own request came in.
    pub(crate) stamp: Tick,
    pub(crate) response: Response,
    /// Disarmed when the answer is on its way.
    pub(crate) revoke_on_drop: RevokeOnDrop,
}

/// A place in line. Dropped, it is given up, unless the request had a key.
pub(crate) struct QueuedRequest {
    pub(crate) ticket: Ticket,
    /// When the caller's own request came in.
    pub(crate) stamp: Tick,
    recipient: GrantRecipient,
    withdraw_on_drop: RevokeOnDrop,
    outcome: oneshot::Receiver<(WaitOutcome, RevokeOnDrop)>,
}

/// Whoever stands in line, for the writer.
struct QueueWaiter {
    recipient: GrantRecipient,
    sender: oneshot::Sender<(WaitOutcome, RevokeOnDrop)>,
}

impl WaitListener for QueueWaiter {
    fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    fn complete(self: Box<Self>, outcome: WaitOutcome) {
        let revoke_on_drop = match &outcome {
            WaitOutcome::Served { leases, .. } => self.recipient.revoke_leases_on_drop(leases),
            WaitOutcome::Unserved(_) | WaitOutcome::TooLate => RevokeOnDrop::disarmed(),
        };
        // If nobody takes it, it is dropped here, and taken back.
        drop(self.sender.send((outcome, revoke_on_drop)));
    }
}

pub(crate) enum QueueOutcome {
    Granted(Box<PendingGrant>),
    Ended(WaitEnd),
    /// The granted leases expired before their grant was durable.
    TooLate,
    /// The server stops. The place is kept if the request had a key.
    ServerShutdown {
        has_key: bool,
    },
    /// The writer ended, and nobody knows what it wrote last.
    Unknown,
}

impl RegistrarHandle {
    /// Asks for leases, and waits for the answer, which is durable.
    pub(crate) async fn acquire(&self, acquire: Acquire) -> AcquireOutcome {
        let (principal, has_key) = (acquire.principal.clone(), acquire.key.is_some());
        self.acquire_with(principal, has_key, Command::Acquire(acquire)).await
    }

    /// The same, for any command that is answered with leases.
    pub(crate) async fn acquire_with(
        &self,
        principal: Principal,
        has_key: bool,
        command: Command,
    ) -> AcquireOutcome {
        let recipient = GrantRecipient { retry_queue: self.retry_queue.clone(), principal, has_key };
        let (answer, answered) = oneshot::channel();
        let (sender, outcome) = oneshot::channel();
        let (to_answer, recovered_tickets) = (recipient.clone(), self.recovered_tickets.clone());
        let waiter = QueueWaiter { recipient: recipient.clone(), sender };
        let respond = move |response: Response| {
            let revoke_on_drop = match &response.reply {
                Reply::Answered { answer: CommandOutcome::Granted { leases }, .. } => {
                    to_answer.revoke_leases_on_drop(leases)
                }
                Reply::Answered { answer: CommandOutcome::Queued { ticket, .. }, .. } => {
                    recovered_tickets.reattach(*ticket);
                    to_answer.withdraw_ticket_on_drop(*ticket)
                }
                _ => RevokeOnDrop::disarmed(),
            };
            // If nobody takes it, it is dropped here or with the channel, and taken back.
            drop(answer.send((response, revoke_on_drop)));
        };
        self.handle.submit_queued(command, respond, waiter);
        // The writer answers everybody before it ends; if it could not, nobody knows.
        let Ok((response, revoke_on_drop)) = answered.await else {
            return AcquireOutcome::NotGranted(Reply::OutcomeUnknown);
        };
        match response.reply.clone() {
            Reply::Answered { answer: CommandOutcome::Granted { leases }, stamp } => {
                AcquireOutcome::Granted(PendingGrant { leases, stamp, response, revoke_on_drop })
            }
            Reply::Answered { answer: CommandOutcome::Queued { ticket, .. }, stamp } => {
                AcquireOutcome::Queued(QueuedRequest {
                    ticket,
                    stamp,
                    recipient,
                    withdraw_on_drop: revoke_on_drop,
                    outcome,
                })
            }
            reply => AcquireOutcome::NotGranted(reply),
        }
    }

    /// Waits in the queue until the request is granted, its wait ends, or `stop` resolves.
    pub(crate) async fn wait(
        &self,
        mut queued: QueuedRequest,
        stop: impl Future<Output = ()>,
    ) -> QueueOutcome {
        let mut is_shutting_down = false;
        let outcome = tokio::select! {
            biased;
            outcome = &mut queued.outcome => outcome,
            () = stop => {
                is_shutting_down = true;
                if queued.recipient.has_key {
                    return QueueOutcome::ServerShutdown { has_key: true };
                }
                // Its turn may come in this very moment: what became of it is told in any case.
                let (ticket, principal) = (queued.ticket, queued.recipient.principal.clone());
                self.retry_queue.submit(Command::Withdraw { ticket, principal, end: WaitEnd::Gone });
                (&mut queued.outcome).await
            }
        };
        let Ok((outcome, revoke_on_drop)) = outcome else { return QueueOutcome::Unknown };
        // The ticket is no more.
        queued.withdraw_on_drop.disarm();
        match outcome {
            WaitOutcome::Served { leases, proof } => {
                let stamp = queued.stamp;
                let answer = CommandOutcome::Granted { leases: leases.clone() };
                let response = Response { reply: Reply::Answered { answer, stamp }, proof };
                QueueOutcome::Granted(Box::new(PendingGrant { leases, stamp, response, revoke_on_drop }))
            }
            WaitOutcome::Unserved(_) if is_shutting_down => QueueOutcome::ServerShutdown { has_key: false },
            WaitOutcome::Unserved(end) => QueueOutcome::Ended(end),
            WaitOutcome::TooLate => QueueOutcome::TooLate,
        }
    }
}
