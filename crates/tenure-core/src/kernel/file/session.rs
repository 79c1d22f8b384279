//! A session of a coding agent, and what it left behind.

use std::sync::Arc;

use super::retry_ticket::FileOwner;
use crate::kernel::name::Holder;
use crate::kernel::newtypes::Tick;
use crate::kernel::process_id::RecordedProcess;

/// A session of a coding agent that lives, or a subagent of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSession {
    /// Its name, and the holder of its leases.
    pub id: Holder,
    /// Whose leases it may use as well: it is a subagent of that one.
    pub parent: Option<Holder>,
    /// Which agent, such as `claude`.
    pub agent: Arc<str>,
    /// What that agent calls the session.
    pub session: Arc<str>,
    /// The process whose end is the end of the session.
    pub process: RecordedProcess,
    /// What it is at, for people; may be empty.
    pub task: Arc<str>,
    pub began_at: Tick,
    /// When it was last heard of. It may be heard of again within a second without a record.
    pub seen_at: Tick,
    /// Its turn is over since then, and nothing was heard of it since.
    pub turn_ended_at: Option<Tick>,
}

impl FileSession {
    /// Who it is, for records that outlive it.
    pub fn owner(&self) -> FileOwner {
        FileOwner {
            holder: self.id.clone(),
            agent: self.agent.clone(),
            session: self.session.clone(),
            process: self.process.clone(),
            task: self.task.clone(),
        }
    }
}

/// A file that its owner let go of without a commit. Whoever has it next is told: it may be dirty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncommittedFile {
    pub owner: FileOwner,
    pub at: Tick,
}
