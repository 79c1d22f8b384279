//! What may be asked about files.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::session::UncommittedFile;
use crate::kernel::name::{Holder, Principal, Resource};
use crate::kernel::newtypes::{Fence, Nonce, Tick, Ticket};
use crate::kernel::process_id::RecordedProcess;

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

/// Who speaks. A session begins with the first that is heard of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSessionInfo {
    pub id: Holder,
    /// Of whom it is a subagent. That one is known.
    pub parent: Option<Holder>,
    pub agent: Arc<str>,
    /// What that agent calls the session.
    pub session: Arc<str>,
    pub process: RecordedProcess,
    /// What it is at now; nothing leaves that as it was.
    pub task: Option<Arc<str>>,
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
