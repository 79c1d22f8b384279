//! Asking for leases, and standing in line for them.
//!
//! Whatever is given travels together with the duty to take it back ([`Undelivered`]). So it does not matter where a
//! request ends whose caller hung up: before it was answered, in line, or between the grant and the answer.

#[cfg(test)]
pub(crate) mod tests;

use tenure_core::kernel::{Acquire, Answer, Command, Fence, Principal, Tick, Ticket, WaitEnd};
use tenure_registrar::Reply;
use tenure_registrar::shell::{Listener, Response, WaitOver};
use tokio::sync::oneshot;

use super::Registrar;
use super::errands::{Recipient, Undelivered};

/// What came of asking for leases.
pub(crate) enum Asked {
    Given(Given),
    InLine(Line),
    Not(Reply),
}

/// Leases that are the caller's, once it is told.
pub(crate) struct Given {
    /// Their numbers, in the order asked for.
    pub(crate) leases: Vec<Fence>,
    /// When the caller's own request came in.
    pub(crate) stamp: Tick,
    pub(crate) response: Response,
    /// Settled when the answer is on its way.
    pub(crate) undelivered: Undelivered,
}

/// A place in line. Dropped, it is given up, unless the request had a key.
pub(crate) struct Line {
    pub(crate) ticket: Ticket,
    /// When the caller's own request came in.
    pub(crate) stamp: Tick,
    recipient: Recipient,
    place: Undelivered,
    over: oneshot::Receiver<(WaitOver, Undelivered)>,
}

/// Whoever stands in line, for the writer.
struct Waiter {
    recipient: Recipient,
    tell: oneshot::Sender<(WaitOver, Undelivered)>,
}

impl Listener for Waiter {
    fn is_gone(&self) -> bool {
        self.tell.is_closed()
    }

    fn tell(self: Box<Self>, over: WaitOver) {
        let undelivered = match &over {
            WaitOver::Served { leases, .. } => self.recipient.leases(leases),
            WaitOver::Unserved(_) => Undelivered::nothing(),
        };
        // If nobody takes it, it is dropped here, and taken back.
        drop(self.tell.send((over, undelivered)));
    }
}

pub(crate) enum Waited {
    Given(Box<Given>),
    Over(WaitEnd),
    /// The server stops. The place is kept if the request had a key.
    Stopped {
        has_key: bool,
    },
    /// The writer ended, and nobody knows what it wrote last.
    Unknown,
}

impl Registrar {
    /// Asks for leases, and waits for the answer, which is durable.
    pub(crate) async fn acquire(&self, acquire: Acquire) -> Asked {
        let (principal, has_key) = (acquire.principal.clone(), acquire.key.is_some());
        self.obtain(principal, has_key, Command::Acquire(acquire)).await
    }

    /// The same, for any command that is answered with leases.
    pub(crate) async fn obtain(&self, principal: Principal, has_key: bool, command: Command) -> Asked {
        let recipient = Recipient { errands: self.errands.clone(), principal, has_key };
        let (answer, answered) = oneshot::channel();
        let (tell, over) = oneshot::channel();
        let (to_answer, orphans) = (recipient.clone(), self.orphans.clone());
        let waiter = Waiter { recipient: recipient.clone(), tell };
        let respond = move |response: Response| {
            let undelivered = match &response.reply {
                Reply::Answered { answer: Answer::Granted { leases }, .. } => to_answer.leases(leases),
                Reply::Answered { answer: Answer::Queued { ticket, .. }, .. } => {
                    orphans.reappeared(*ticket);
                    to_answer.place(*ticket)
                }
                _ => Undelivered::nothing(),
            };
            // If nobody takes it, it is dropped here or with the channel, and taken back.
            drop(answer.send((response, undelivered)));
        };
        self.handle.ask_in_line(command, respond, waiter);
        // The writer answers everybody before it ends; if it could not, nobody knows.
        let Ok((response, undelivered)) = answered.await else { return Asked::Not(Reply::OutcomeUnknown) };
        match response.reply.clone() {
            Reply::Answered { answer: Answer::Granted { leases }, stamp } => {
                Asked::Given(Given { leases, stamp, response, undelivered })
            }
            Reply::Answered { answer: Answer::Queued { ticket, .. }, stamp } => {
                Asked::InLine(Line { ticket, stamp, recipient, place: undelivered, over })
            }
            reply => Asked::Not(reply),
        }
    }

    /// Waits in line until its turn has come, or its time is over, or the server is `stopping`.
    pub(crate) async fn wait(&self, mut line: Line, stopping: impl Future<Output = ()>) -> Waited {
        let mut is_stopping = false;
        let over = tokio::select! {
            biased;
            over = &mut line.over => over,
            () = stopping => {
                is_stopping = true;
                if line.recipient.has_key {
                    return Waited::Stopped { has_key: true };
                }
                // Its turn may come in this very moment: what became of it is told in any case.
                let (ticket, principal) = (line.ticket, line.recipient.principal.clone());
                self.errands.run(Command::Withdraw { ticket, principal, end: WaitEnd::Gone });
                (&mut line.over).await
            }
        };
        let Ok((over, undelivered)) = over else { return Waited::Unknown };
        // The ticket is no more.
        line.place.settle();
        match over {
            WaitOver::Served { leases, proof } => {
                let stamp = line.stamp;
                let answer = Answer::Granted { leases: leases.clone() };
                let response = Response { reply: Reply::Answered { answer, stamp }, proof };
                Waited::Given(Box::new(Given { leases, stamp, response, undelivered }))
            }
            WaitOver::Unserved(_) if is_stopping => Waited::Stopped { has_key: false },
            WaitOver::Unserved(end) => Waited::Over(end),
        }
    }
}
