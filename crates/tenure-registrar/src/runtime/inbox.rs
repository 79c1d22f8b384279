//! What waits for the writer: bounded, and stamped in the very moment in which it is put in.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tenure_core::kernel::Command;

use super::clock::Clock;
use super::proof::BatchProof;
use super::waker::Waker;
use crate::registrar::Reply;

#[derive(Debug, Clone)]
pub struct Response {
    pub reply: Reply,
    /// The signature of what it rests on, where something was granted or renewed.
    pub proof: Option<Arc<BatchProof>>,
}

impl From<Reply> for Response {
    fn from(reply: Reply) -> Self {
        Self { reply, proof: None }
    }
}

/// Takes the response to a request, once.
pub(crate) type Responder = Box<dyn FnOnce(Response) + Send>;

pub(crate) struct InboxRequest {
    pub(crate) command: Command,
    pub(crate) microseconds: u64,
    pub(crate) respond: Responder,
}

/// The requests that wait. Reading the clock and putting in are one step: when the writer takes out what is there
/// and reads the clock, nothing that was stamped before that is still on its way.
pub(crate) struct Inbox {
    state: Mutex<InboxState>,
    waker: Waker,
    /// How many the writer has taken out and not decided yet: they wait too.
    backlog: AtomicUsize,
    /// How many wait, for those who would be refused anyway: a crowd that asks again and again must not keep the
    /// writer from the lock.
    length: AtomicUsize,
}

#[derive(Default)]
struct InboxState {
    requests: VecDeque<InboxRequest>,
    is_closed: bool,
}

/// What the writer finds. It is filled again and again, so that nobody has to make room under the lock.
#[derive(Default)]
pub(crate) struct InboxBatch {
    pub(crate) requests: VecDeque<InboxRequest>,
    pub(crate) microseconds: u64,
    pub(crate) is_closed: bool,
}

impl Inbox {
    pub(crate) fn new() -> io::Result<Inbox> {
        let content = Mutex::new(InboxState::default());
        Ok(Inbox {
            state: content,
            waker: Waker::new()?,
            length: AtomicUsize::new(0),
            backlog: AtomicUsize::new(0),
        })
    }

    /// Puts a request in, or answers at once that there is no room, or that nobody will take it out.
    pub(crate) fn push(&self, clock: &dyn Clock, command: Command, max_waiting: usize, respond: Responder) {
        let backlog = self.backlog.load(Ordering::Relaxed);
        if self.length.load(Ordering::Relaxed) + backlog >= max_waiting {
            return respond(Reply::Busy.into());
        }
        let mut content = self.state.lock();
        let rejection = if content.is_closed {
            Some(Reply::Unavailable)
        } else if content.requests.len() + backlog >= max_waiting {
            Some(Reply::Busy)
        } else {
            None
        };
        if let Some(reply) = rejection {
            drop(content);
            return respond(reply.into());
        }
        let microseconds = clock.microseconds();
        content.requests.push_back(InboxRequest { command, microseconds, respond });
        self.length.store(content.requests.len(), Ordering::Relaxed);
        drop(content);
        self.waker.wake();
    }

    /// How many wait, those that were taken out and are not decided yet among them.
    pub(crate) fn depth(&self) -> usize {
        self.length.load(Ordering::Relaxed) + self.backlog.load(Ordering::Relaxed)
    }

    /// Takes out everything into `found`, of which nothing is left, and reads the clock. Waits for something first, up
    /// to `at_most`.
    pub(crate) fn take(&self, clock: &dyn Clock, timeout: Option<Duration>, batch: &mut InboxBatch) {
        if timeout != Some(Duration::ZERO) {
            self.waker.prepare_sleep();
            let content = self.state.lock();
            let is_idle = content.requests.is_empty() && !content.is_closed;
            drop(content);
            if is_idle {
                self.waker.sleep(timeout);
            } else {
                self.waker.cancel_sleep();
            }
        }
        let mut content = self.state.lock();
        std::mem::swap(&mut content.requests, &mut batch.requests);
        self.length.store(content.requests.len(), Ordering::Relaxed);
        batch.microseconds = clock.microseconds();
        batch.is_closed = content.is_closed;
    }

    /// Says how many were taken out and are not decided yet.
    pub(crate) fn set_backlog(&self, backlog: usize) {
        self.backlog.store(backlog, Ordering::Relaxed);
    }

    /// Ends a wait: something else has changed.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.waker.wake();
    }

    /// Takes no more, and tells whoever still waits.
    pub(crate) fn reject_all(&self) {
        self.close();
        let waiting = std::mem::take(&mut self.state.lock().requests);
        // Nobody is told to ask again soon where nobody answers any more.
        self.length.store(0, Ordering::Relaxed);
        self.set_backlog(0);
        waiting.into_iter().for_each(|waiting| (waiting.respond)(Reply::Unavailable.into()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::runtime::clock::BootClock;

    #[test]
    fn undecided_requests_count_towards_the_inbox_limit() {
        let (inbox, clock) = (Inbox::new().unwrap(), BootClock::new().unwrap());
        let (sender, replies) = channel();
        let put = |max_waiting| {
            let sender = sender.clone();
            let respond = Box::new(move |response: Response| sender.send(response.reply).unwrap());
            inbox.push(&clock, Command::Expire { max_ended: 1 }, max_waiting, respond);
        };
        inbox.set_backlog(2);
        put(3);
        assert!(replies.try_recv().is_err(), "there is room for one");
        put(3);
        assert_eq!(replies.try_recv(), Ok(Reply::Busy));
        inbox.set_backlog(0);
        put(3);
        assert!(replies.try_recv().is_err(), "there is room again");
        inbox.reject_all();
        assert_eq!(replies.try_iter().collect::<Vec<_>>(), [Reply::Unavailable, Reply::Unavailable]);
        put(1);
        assert_eq!(replies.try_recv(), Ok(Reply::Unavailable), "nobody is told to ask again soon");
    }
}
