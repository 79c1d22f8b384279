//! What happened to files and to those who change them, in the past tense.

use std::sync::Arc;

use super::command::{FileSessionEnd, FileSessionInfo};
use super::retry_ticket::{BlockedReport, RetryTicketEnd};
use crate::kernel::lease_request::LeaseRequest;
use crate::kernel::name::{Holder, Resource};
use crate::kernel::newtypes::{Tick, Ticket};

/// One thing that happened. That files were got and let go of is told by their leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileEvent {
    Began {
        session: FileSessionInfo,
        at: Tick,
    },
    Seen {
        session: Holder,
        at: Tick,
        /// What it is at, if that changed.
        task: Option<Arc<str>>,
    },
    TurnEnded {
        session: Holder,
        at: Tick,
    },
    /// A session wants a file that another one has. This is the heartbeat of contention: it says when the one retry is due.
    Contended(ContentionNotice),
    /// The file was not free at the retry.
    Blocked {
        ticket: Ticket,
        report: BlockedReport,
    },
    Closed {
        ticket: Ticket,
        at: Tick,
        end: RetryTicketEnd,
    },
    /// A session is over; what it held was let go of right before.
    Ended {
        session: Holder,
        at: Tick,
        end: FileSessionEnd,
        /// For people.
        detail: Arc<str>,
    },
    /// Something was changed by somebody who had no right to.
    Violated {
        resource: Resource,
        at: Tick,
        /// Who had the right.
        owner: Option<Holder>,
        /// Who did it, if that is known.
        session: Option<Holder>,
        /// What was seen, for people.
        detail: Arc<str>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentionNotice {
    pub ticket: Ticket,
    pub session: Holder,
    pub request: LeaseRequest,
    pub owner: Holder,
    pub at: Tick,
    pub retry_at: Tick,
    /// Who waits for whom in a circle, beginning with the session; empty if there is none.
    pub cycle: Vec<Holder>,
}

crate::kernel::event::type_names! {
    FileEvent {
        Began = "file.began",
        Seen = "file.seen",
        TurnEnded = "file.turn_ended",
        Contended = "file.contended",
        Blocked = "file.blocked",
        Closed = "file.closed",
        Ended = "file.ended",
        Violated = "file.violated",
    }
}

impl FileEvent {
    pub fn occurred_at(&self) -> Tick {
        match self {
            FileEvent::Contended(contended) => contended.at,
            FileEvent::Blocked { report: found, .. } => found.at,
            FileEvent::Began { at, .. }
            | FileEvent::Seen { at, .. }
            | FileEvent::TurnEnded { at, .. }
            | FileEvent::Closed { at, .. }
            | FileEvent::Ended { at, .. }
            | FileEvent::Violated { at, .. } => *at,
        }
    }

    /// About how many bytes callers made it long by.
    pub fn byte_size(&self) -> usize {
        let names = |circle: &[Holder]| circle.iter().map(|holder| holder.as_str().len()).sum::<usize>();
        let text = |text: &Option<Arc<str>>| text.as_ref().map_or(0, |text| text.len());
        match self {
            FileEvent::Began { session, .. } => session.byte_size() + text(&session.task),
            FileEvent::Seen { session, task, .. } => session.as_str().len() + text(task),
            FileEvent::TurnEnded { session, .. } => session.as_str().len(),
            FileEvent::Contended(contended) => {
                contended.session.as_str().len()
                    + contended.owner.as_str().len()
                    + contended.request.resource.as_str().len()
                    + names(&contended.cycle)
            }
            FileEvent::Blocked { report: found, .. } => found.owner.byte_size() + names(&found.cycle),
            FileEvent::Closed { .. } => 0,
            FileEvent::Ended { session, detail, .. } => session.as_str().len() + detail.len(),
            FileEvent::Violated { resource, owner, session, detail, .. } => {
                let name = |name: &Option<Holder>| name.as_ref().map_or(0, |name| name.as_str().len());
                resource.as_str().len() + name(owner) + name(session) + detail.len()
            }
        }
    }
}

impl FileSessionInfo {
    /// How many bytes its names have, but for what it is at.
    pub(crate) fn byte_size(&self) -> usize {
        let parent = self.parent.as_ref().map_or(0, |parent| parent.as_str().len());
        self.id.as_str().len() + parent + self.agent.len() + self.session.len() + self.process.byte_size()
    }
}
