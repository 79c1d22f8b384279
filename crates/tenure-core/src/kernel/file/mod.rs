//! Files: which session of a coding agent may change which file of a working tree.
//!
//! A lease on a file is not renewed: it lasts as long as its owner's process. Callers report whether a process is alive, and
//! whether a file is committed or still open; the consequences are decided here. A session that a live owner blocks gets one
//! ticket for the file and may retry once when its time has come. If the file is still held then, it is reported as blocked.

mod codec;
mod contention;
mod decide;
mod session;
mod session_lifecycle;
mod state;

use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) use contention::blocked_requests_of;
pub use contention::{BlockedReport, RetryTicket, RetryTicketEnd};
pub(super) use decide::decide;
pub use session::{FileOwner, FileSession, FileSessionInfo, UncommittedFile};
pub(super) use state::FileStore;

use crate::kernel::lease::lease_request::LeaseRequest;
use crate::value::{Fence, Holder, Nonce, Principal, Resource, Tick, TickDuration, Ticket};

/// In whose name leases on files are held.
pub const FILES_PRINCIPAL: &str = "system:files";

/// How long a lease on a file lasts at most. Its owner's life decides, not this: a machine that slept for a week must not find
/// its agents without what they hold.
pub const FILE_LEASE_TTL: TickDuration = TickDuration::from_secs(366 * 24 * 60 * 60);

/// In whose name leases on files are held.
pub fn files_principal() -> Principal {
    Principal::parse(FILES_PRINCIPAL).expect("it is a name")
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileCommand {
    RecordActivity {
        session: FileSessionInfo,
        activity: FileSessionActivity,
    },
    /// A session is about to change these files: all of them are its own, or none is.
    Acquire(FileAcquire),
    /// These were committed and are clean. What of them belongs to these sessions, or to subagents of theirs, is let go of.
    Commit {
        sessions: Vec<Holder>,
        resources: Vec<Resource>,
    },
    /// The turn of a session is over, and nothing was heard of it for long enough: it lets go of what it has.
    ReleaseIdle {
        session: Holder,
        /// When its turn ended, as the caller knows it. If something was heard since, nothing happens.
        turn_ended_at: Tick,
        /// What it still has open, and keeps.
        keep: Vec<Resource>,
    },
    /// These sessions are over, and their subagents with them.
    End {
        /// Which. Those that are not known are passed over.
        sessions: Vec<Holder>,
        end: FileSessionEnd,
        /// For people.
        detail: Arc<str>,
    },
    /// What was got for a process before its session was known by name is that session's from now on.
    Adopt {
        from: Holder,
        /// Who gets it, in the same process.
        to: FileSessionInfo,
    },
    /// A person hands a file to a session, whoever has it.
    Give {
        /// All names of the file.
        file: FileRequest,
        to: Holder,
        by: Principal,
    },
    /// A person takes a file from whoever has it.
    ForceRelease {
        /// All names of the file.
        resources: Vec<Resource>,
        by: Principal,
        detail: Arc<str>,
    },
    /// A person lets a blocked session go on: it gets its file, if that is free.
    Resume {
        report: Ticket,
        /// All names of the file.
        file: FileRequest,
        /// Whose life was just made sure of.
        checked: Vec<Holder>,
    },
    /// Something was changed by somebody who had no right to.
    RecordViolation {
        resource: Resource,
        /// Who, if that is known.
        session: Option<Holder>,
        /// What was seen, for people.
        detail: Arc<str>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSessionActivity {
    Active,
    /// Its turn is over, and nothing of it goes on in the background.
    TurnEnded,
    /// Something of it goes on in the background. If its turn is over, it stays so, from now on.
    Background,
}

/// A session is about to change files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileAcquire {
    pub session: FileSessionInfo,
    pub files: Vec<FileRequest>,
    /// Whose life was just made sure of. Nobody is refused for the sake of somebody else.
    pub checked: Vec<Holder>,
    /// Whether it is not the agent itself that asks, but something that it started.
    pub background: bool,
}

/// One file by all the names that lead to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRequest {
    /// The name that it is known by.
    pub resource: Resource,
    /// Names under which somebody might reach it otherwise.
    pub aliases: Vec<Resource>,
    /// For tokens that nobody is given: one for each name.
    pub nonces: Vec<Nonce>,
}

impl FileRequest {
    /// All of its names, each once, with what their tokens would be made from.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&Resource, Nonce)> {
        let nonces = self.nonces.iter().copied().chain(std::iter::repeat(Nonce([0; 16])));
        let mut known = BTreeSet::new();
        let names = std::iter::once(&self.resource).chain(&self.aliases).zip(nonces);
        names.filter(move |(resource, _)| known.insert(*resource))
    }
}

crate::text_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum FileSessionEnd: parse {
        Ended = "ENDED",
        Died = "DIED",
        /// A subagent is done; what it has goes to its parent.
        TransferredToParent = "HANDED_UP",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileOutcome {
    Acknowledged,
    /// The files are the session's, or those of somebody whose files it may use.
    Granted {
        leases: Vec<Fence>,
        /// Which of them somebody else let go of without a commit.
        uncommitted: Vec<(Resource, UncommittedFile)>,
    },
    /// These are in the way, and nobody has made sure that they live: do that, and ask again.
    CheckRequired {
        sessions: Vec<Holder>,
    },
    /// Somebody who lives has some of it. The one retry is due then.
    Wait {
        /// What, and who has it.
        held: Vec<HeldFile>,
        /// When the first retry is due.
        until: Tick,
    },
    /// The one retry is used up.
    Blocked {
        /// What, and who has it.
        held: Vec<HeldFile>,
        report: Ticket,
    },
    Released {
        resources: Vec<Resource>,
        /// And these were committed by somebody else than who has them.
        foreign: Vec<(Resource, Holder)>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldFile {
    pub resource: Resource,
    pub holder: Holder,
    /// The ticket of whoever asked.
    pub ticket: Ticket,
}

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
