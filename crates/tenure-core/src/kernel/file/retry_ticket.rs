//! What is kept of somebody who met a living owner: one ticket for a session and a file, one retry, one report.

use std::sync::Arc;

use crate::kernel::lease_request::LeaseRequest;
use crate::kernel::name::Holder;
use crate::kernel::newtypes::{Tick, Ticket};
use crate::kernel::process_id::RecordedProcess;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryTicket {
    /// Its number, and that of its report.
    pub ticket: Ticket,
    pub session: Holder,
    pub request: LeaseRequest,
    pub at: Tick,
    pub retry_at: Tick,
    /// Who waits for whom in a circle, beginning with the session; empty if there was none when it began to wait.
    pub cycle: Vec<Holder>,
    /// What was found at the retry, if the file was not free then.
    pub blocked: Option<BlockedReport>,
    pub end: Option<(Tick, RetryTicketEnd)>,
}

/// The retry found a living owner: the session stops and waits for an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedReport {
    pub at: Tick,
    pub owner: FileOwner,
    pub held_since: Tick,
    /// When something was last heard of the owner.
    pub seen_at: Tick,
    /// Who waits for whom in a circle, beginning with the session; empty if there is none.
    pub cycle: Vec<Holder>,
}

/// Who has or had something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOwner {
    pub holder: Holder,
    /// Which agent; empty if it is none.
    pub agent: Arc<str>,
    /// What that agent calls the session; may be empty.
    pub session: Arc<str>,
    /// Empty if it is none of a file session.
    pub process: RecordedProcess,
    /// What it was at; may be empty.
    pub task: Arc<str>,
}

impl FileOwner {
    /// Somebody of whom nothing but its name is known.
    pub fn from_holder(holder: Holder) -> FileOwner {
        let none = || Arc::from("");
        FileOwner {
            holder,
            agent: none(),
            session: none(),
            process: RecordedProcess::default(),
            task: none(),
        }
    }

    pub(crate) fn byte_size(&self) -> usize {
        let texts = self.agent.len() + self.session.len() + self.process.byte_size() + self.task.len();
        self.holder.as_str().len() + texts
    }
}

crate::text_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum RetryTicketEnd: parse {
        Served = "SERVED",
        Gone = "GONE",
        /// A person gave the file to the session after it was blocked.
        Resumed = "RESUMED",
    }
}
