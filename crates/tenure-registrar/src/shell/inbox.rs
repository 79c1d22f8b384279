//! What waits for the writer: bounded, and stamped in the very moment in which it is put in.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::kernel::Command;

use super::clock::Clock;
use crate::registrar::Reply;

/// Takes the reply to a request, once.
pub(crate) type Responder = Box<dyn FnOnce(Reply) + Send>;

/// A request that waits.
pub(crate) struct Waiting {
    pub(crate) command: Command,
    pub(crate) microseconds: u64,
    pub(crate) respond: Responder,
}

/// The requests that wait. Reading the clock and putting in are one step: when the writer takes out what is there
/// and reads the clock, nothing that was stamped before that is still on its way.
#[derive(Default)]
pub(crate) struct Inbox {
    content: Mutex<Content>,
    arrived: Condvar,
    /// How many wait, for those who would be refused anyway: a crowd that asks again and again must not keep the
    /// writer from the lock.
    length: AtomicUsize,
}

#[derive(Default)]
struct Content {
    waiting: VecDeque<Waiting>,
    is_closed: bool,
}

/// What the writer finds.
pub(crate) struct Found {
    pub(crate) waiting: VecDeque<Waiting>,
    pub(crate) microseconds: u64,
    pub(crate) is_closed: bool,
}

impl Inbox {
    /// Puts a request in, or answers at once that there is no room, or that nobody will take it out.
    pub(crate) fn put(&self, clock: &dyn Clock, command: Command, most: usize, respond: Responder) {
        if self.length.load(Ordering::Relaxed) >= most {
            return respond(Reply::Busy);
        }
        let mut content = self.lock();
        let refusal = if content.is_closed {
            Some(Reply::Unavailable)
        } else if content.waiting.len() >= most {
            Some(Reply::Busy)
        } else {
            None
        };
        if let Some(reply) = refusal {
            drop(content);
            return respond(reply);
        }
        let microseconds = clock.microseconds();
        content.waiting.push_back(Waiting { command, microseconds, respond });
        self.length.store(content.waiting.len(), Ordering::Relaxed);
        drop(content);
        self.arrived.notify_one();
    }

    /// Takes out everything, and reads the clock. Waits for something first, up to `at_most`, unless `now` says
    /// that there is something to do anyway.
    pub(crate) fn take(&self, clock: &dyn Clock, at_most: Option<Duration>) -> Found {
        let mut content = self.lock();
        let is_idle = |content: &mut Content| content.waiting.is_empty() && !content.is_closed;
        match at_most {
            Some(Duration::ZERO) => {}
            Some(at_most) => {
                let waited = self.arrived.wait_timeout_while(content, at_most, is_idle);
                content = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            None => {
                content = self.arrived.wait_while(content, is_idle).unwrap_or_else(PoisonError::into_inner);
            }
        }
        let waiting = std::mem::take(&mut content.waiting);
        self.length.store(0, Ordering::Relaxed);
        Found { waiting, microseconds: clock.microseconds(), is_closed: content.is_closed }
    }

    /// Takes no more.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_all();
    }

    /// Takes no more, and tells whoever still waits.
    pub(crate) fn turn_away(&self) {
        self.close();
        let waiting = std::mem::take(&mut self.lock().waiting);
        waiting.into_iter().for_each(|waiting| (waiting.respond)(Reply::Unavailable));
    }

    // A responder that panicked has left the content as it was.
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
