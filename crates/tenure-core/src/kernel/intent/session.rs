//! A session: what became of an intent.

use std::sync::Arc;

use super::target::Intent;
use crate::kernel::name::{Holder, Principal};
use crate::kernel::newtypes::{Fence, Tick};

/// Under which one request and its repetitions are known: HMAC-SHA256 of what is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntentKey(pub [u8; 32]);

crate::text_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum IntentSessionState: parse {
        /// Accepted. No worker has taken it.
        New = "NEW",
        /// Its leases are held, its pipeline is about to start.
        Starting = "STARTING",
        Running = "RUNNING",
        Stopping = "STOPPING",
        Ended = "ENDED",
    }
}

impl IntentSessionState {
    /// Which states may follow. The one table of them.
    pub const fn successors(self) -> &'static [IntentSessionState] {
        match self {
            Self::New => &[Self::Starting, Self::Ended],
            Self::Starting => &[Self::Running, Self::Stopping, Self::Ended],
            Self::Running => &[Self::Stopping, Self::Ended],
            Self::Stopping => &[Self::Ended],
            Self::Ended => &[],
        }
    }

    /// Whether a worker has it, with its leases.
    pub const fn is_taken(self) -> bool {
        matches!(self, Self::Starting | Self::Running | Self::Stopping)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntentSessionEnd {
    /// Another session shows the same.
    Busy,
    NoTuner,
    NoWorker,
    Stopped,
    /// Its pipeline ended by itself, and says that all went well.
    Completed,
    /// Its pipeline did not start, or ended with an error.
    Failed,
    LeaseLost,
    /// Its worker was gone, and the next one cleaned up.
    WorkerRestarted,
    WorkerStopped,
}

impl IntentSessionEnd {
    pub const ALL: [IntentSessionEnd; 9] = [
        Self::Busy,
        Self::NoTuner,
        Self::NoWorker,
        Self::Stopped,
        Self::Completed,
        Self::Failed,
        Self::LeaseLost,
        Self::WorkerRestarted,
        Self::WorkerStopped,
    ];

    /// The reason, as it is written for people and programs.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Busy | Self::NoTuner => "R_LEASE_BUSY",
            Self::NoWorker => "R_NO_WORKER",
            Self::Stopped => "R_STOPPED",
            Self::Completed => "R_PIPELINE_EXITED",
            Self::Failed => "R_PIPELINE_FAILED",
            Self::LeaseLost => "R_LEASE_EXPIRED",
            Self::WorkerRestarted => "R_WORKER_RESTARTED",
            Self::WorkerStopped => "R_WORKER_STOPPED",
        }
    }

    /// How it went, as it is written for people and programs.
    pub const fn outcome(self) -> &'static str {
        match self {
            Self::Busy => "REJECTED_BUSY",
            Self::NoTuner => "REJECTED_NO_TUNER",
            Self::NoWorker => "REJECTED_NO_WORKER",
            Self::Stopped | Self::WorkerStopped => "STOPPED",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::LeaseLost | Self::WorkerRestarted => "LOST",
        }
    }
}

/// What became of an intent, so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntentSession {
    /// Its name, and the holder of its leases.
    pub id: Holder,
    pub intent: Intent,
    /// Under which a repetition finds it, until it is over.
    pub key: IntentKey,
    pub principal: Principal,
    pub state: IntentSessionState,
    /// Grows with every change of any session: whoever has seen this one has seen all below.
    pub revision: u64,
    pub accepted_at: Tick,
    /// Until when a worker has to take it.
    pub start_by: Tick,
    /// When it came to where it is.
    pub changed_at: Tick,
    /// Who took it, and under which guard.
    pub worker: Option<(Holder, Fence)>,
    /// Which tuner it has or had.
    pub slot: Option<u32>,
    /// The processes that carry it out, as its worker names them; may be empty.
    pub process: Arc<str>,
    pub end: Option<IntentSessionEnd>,
    /// For people; may be empty.
    pub detail: Arc<str>,
}

impl IntentSession {
    /// About how many bytes the smallest one takes.
    const MIN_BYTES: usize = 256;

    /// About how many bytes one takes that begins like this.
    pub(crate) fn byte_size_of(id: &Holder, intent: &Intent, principal: &Principal) -> usize {
        Self::MIN_BYTES + id.as_str().len() + intent.byte_size() + principal.as_str().len()
    }

    /// How many leases it has while a worker has it.
    pub(crate) fn required_lease_count(&self) -> usize {
        1 + usize::from(self.slot.is_some())
    }

    /// About how many bytes it takes.
    pub(crate) fn byte_size(&self) -> usize {
        let worker = self.worker.as_ref().map_or(0, |(worker, _)| worker.as_str().len());
        let texts = self.process.len() + self.detail.len();
        Self::byte_size_of(&self.id, &self.intent, &self.principal) + worker + texts
    }
}
