//! What waits for the writer: bounded, and stamped in the very moment in which it is put in.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tenure_core::kernel::Command;

use super::bell::Bell;
use super::clock::Clock;
use super::proof::Proof;
use crate::registrar::Reply;

#[derive(Debug, Clone)]
pub struct Response {
    pub reply: Reply,
    /// The signature of what it rests on, where something was granted or renewed.
    pub proof: Option<Arc<Proof>>,
}

impl From<Reply> for Response {
    fn from(reply: Reply) -> Self {
        Self { reply, proof: None }
    }
}

/// Takes the response to a request, once.
pub(crate) type Responder = Box<dyn FnOnce(Response) + Send>;

pub(crate) struct Waiting {
    pub(crate) command: Command,
    pub(crate) microseconds: u64,
    pub(crate) respond: Responder,
}

/// The requests that wait. Reading the clock and putting in are one step: when the writer takes out what is there
/// and reads the clock, nothing that was stamped before that is still on its way.
pub(crate) struct Inbox {
    content: Mutex<Content>,
    arrived: Bell,
    /// How many the writer has taken out and not decided yet: they wait too.
    backlog: AtomicUsize,
    /// How many wait, for those who would be refused anyway: a crowd that asks again and again must not keep the
    /// writer from the lock.
    length: AtomicUsize,
}

#[derive(Default)]
struct Content {
    waiting: VecDeque<Waiting>,
    is_closed: bool,
}

/// What the writer finds. It is filled again and again, so that nobody has to make room under the lock.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) waiting: VecDeque<Waiting>,
    pub(crate) microseconds: u64,
    pub(crate) is_closed: bool,
}

impl Inbox {
    pub(crate) fn new() -> io::Result<Inbox> {
        let content = Mutex::new(Content::default());
        Ok(Inbox {
            content,
            arrived: Bell::new()?,
            length: AtomicUsize::new(0),
            backlog: AtomicUsize::new(0),
        })
    }

    /// Puts a request in, or answers at once that there is no room, or that nobody will take it out.
    pub(crate) fn put(&self, clock: &dyn Clock, command: Command, most: usize, respond: Responder) {
        let backlog = self.backlog.load(Ordering::Relaxed);
        if self.length.load(Ordering::Relaxed) + backlog >= most {
            return respond(Reply::Busy.into());
        }
        let mut content = self.content.lock();
        let refusal = if content.is_closed {
            Some(Reply::Unavailable)
        } else if content.waiting.len() + backlog >= most {
            Some(Reply::Busy)
        } else {
            None
        };
        if let Some(reply) = refusal {
            drop(content);
            return respond(reply.into());
        }
        let microseconds = clock.microseconds();
        content.waiting.push_back(Waiting { command, microseconds, respond });
        self.length.store(content.waiting.len(), Ordering::Relaxed);
        drop(content);
        self.arrived.ring();
    }

    /// How many wait, those that were taken out and are not decided yet among them.
    pub(crate) fn depth(&self) -> usize {
        self.length.load(Ordering::Relaxed) + self.backlog.load(Ordering::Relaxed)
    }

    /// Takes out everything into `found`, of which nothing is left, and reads the clock. Waits for something first, up
    /// to `at_most`.
    pub(crate) fn take(&self, clock: &dyn Clock, at_most: Option<Duration>, found: &mut Found) {
        if at_most != Some(Duration::ZERO) {
            self.arrived.lie_down();
            let content = self.content.lock();
            let is_idle = content.waiting.is_empty() && !content.is_closed;
            drop(content);
            if is_idle {
                self.arrived.sleep(at_most);
            } else {
                self.arrived.get_up();
            }
        }
        let mut content = self.content.lock();
        std::mem::swap(&mut content.waiting, &mut found.waiting);
        self.length.store(content.waiting.len(), Ordering::Relaxed);
        found.microseconds = clock.microseconds();
        found.is_closed = content.is_closed;
    }

    /// Says how many were taken out and are not decided yet.
    pub(crate) fn set_backlog(&self, backlog: usize) {
        self.backlog.store(backlog, Ordering::Relaxed);
    }

    /// Ends a wait: something else has changed.
    pub(crate) fn wake(&self) {
        self.arrived.ring();
    }

    pub(crate) fn close(&self) {
        self.content.lock().is_closed = true;
        self.arrived.ring();
    }

    /// Takes no more, and tells whoever still waits.
    pub(crate) fn turn_away(&self) {
        self.close();
        let waiting = std::mem::take(&mut self.content.lock().waiting);
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
    use crate::shell::clock::BootClock;

    #[test]
    fn undecided_requests_count_towards_the_inbox_limit() {
        let (inbox, clock) = (Inbox::new().unwrap(), BootClock::new().unwrap());
        let (sender, told) = channel();
        let put = |most| {
            let sender = sender.clone();
            let respond = Box::new(move |response: Response| sender.send(response.reply).unwrap());
            inbox.put(&clock, Command::Expire { most: 1 }, most, respond);
        };
        inbox.set_backlog(2);
        put(3);
        assert!(told.try_recv().is_err(), "there is room for one");
        put(3);
        assert_eq!(told.try_recv(), Ok(Reply::Busy));
        inbox.set_backlog(0);
        put(3);
        assert!(told.try_recv().is_err(), "there is room again");
        inbox.turn_away();
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [Reply::Unavailable, Reply::Unavailable]);
        put(1);
        assert_eq!(told.try_recv(), Ok(Reply::Unavailable), "nobody is told to ask again soon");
    }
}
