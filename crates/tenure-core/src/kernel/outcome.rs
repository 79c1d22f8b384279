//! The outcome of a command: events to append, and the response to the caller.

use thiserror::Error;

use super::agent::AgentOutcome;
use super::event::{Event, RevocationCause};
use super::file::FileOutcome;
use super::intent::IntentOutcome;
use crate::authority::Budget;
use crate::rules::InvalidInput;
use crate::value::{Fence, Holder, LeaseMode, Resource, Tick, TickDuration, Ticket};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What to append, in this order. A refusal may have events too: an expiry found on the way, or whom
    /// that let in.
    pub events: Vec<Event>,
    /// What to tell the caller once the events are durable.
    pub outcome: CommandOutcome,
    /// More waiters have their turn than one decision lets in: [`super::Command::ServeWaiters`] lets in the rest.
    pub has_more_waiters: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandOutcome {
    /// These leases are the caller's, in the order asked for.
    Granted {
        leases: Vec<Fence>,
    },
    Queued {
        /// Its place, for good.
        ticket: Ticket,
        /// How many are served before it, and itself.
        position: usize,
        until: Tick,
        blocked_by: Vec<Holder>,
    },
    Renewed {
        lease: Fence,
        /// Its end: moved, or where it was when that is later.
        expires_at: Tick,
    },
    /// The lease is over. It may have been over before.
    Released {
        lease: Fence,
    },
    /// The lease goes on under another number.
    Reissued {
        old_lease: Fence,
        lease: Fence,
    },
    Ended {
        leases: Vec<Fence>,
    },
    Withdrawn {
        /// Whether it waited until now; else it was served, or had left, before.
        waited: bool,
    },
    /// What was over is announced.
    Swept {
        /// Whether more is over than was asked to be announced at once.
        more: bool,
    },
    Agent(Box<AgentOutcome>),
    File(Box<FileOutcome>),
    Intent(Box<IntentOutcome>),
    Spent {
        lease: Fence,
        /// What was left then.
        remaining: Budget,
    },
    Rejected(Rejection),
}

/// Why not. A refusal is an answer, not an error: nothing is broken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Rejection {
    #[error(transparent)]
    Invalid(#[from] InvalidInput),
    /// A time to live outside of what is permitted. It is never clamped: the caller counts on what it asked for.
    #[error("a lease lasts from {} to {} ms; {} ms were asked for", min.as_millis(), max.as_millis(), requested.as_millis())]
    TtlOutOfRange { requested: TickDuration, min: TickDuration, max: TickDuration },
    /// Somebody else has it, or waits for it and came first.
    #[error("{resource} is held by {holder}")]
    Held {
        resource: Resource,
        holder: Holder,
        /// When that one's lease, or wait, is over at the latest.
        until: Tick,
        waiting: usize,
    },
    #[error("{max} wait already for {what}")]
    QueueFull {
        /// For what, or on whose behalf.
        what: String,
        max: usize,
    },
    /// Waiting would never end: each of these waits for the next, and the last for the first.
    #[error("waiting would close a circle of {} holders", cycle.len())]
    Deadlock {
        /// The circle, beginning with the caller.
        cycle: Vec<Holder>,
    },
    /// The principal holds or waits for as many leases as it may.
    #[error("the quota of {max} leases is used up")]
    QuotaExceeded { max: usize },
    #[error("this idempotency key was used for another request")]
    KeyReused,
    /// The holder's name belongs to somebody else.
    #[error("the holder {holder} belongs to another principal")]
    HolderTaken { holder: Holder },
    /// No such lease, or one that ended too long ago to be remembered.
    #[error("no such lease")]
    NotFound,
    /// No such waiter, or somebody else's.
    #[error("no such ticket")]
    NoSuchTicket,
    /// The agent has said how old it is, and cannot become older, or another in the middle of an attempt.
    #[error("the agent's priority is {current}, and stays so until its attempt is over")]
    PriorityFixed { current: u64 },
    /// The agent has held leases for as long as one of its age may. It may begin anew, younger.
    #[error("the agent has held leases for too long with priority {has}; its next attempt has to be younger")]
    LeaseTimeUsed { has: u64 },
    /// What the agent remembers is from too long ago, or from a life before the latest.
    #[error("what the agent remembers is too old")]
    MemoryStale {
        /// Which of its lives is the latest.
        epoch: u64,
    },
    /// Nobody of this name has declared or reported anything.
    #[error("no such agent")]
    NoSuchAgent,
    /// No such session, or one that ended too long ago to be remembered.
    #[error("no such session")]
    NoSuchSession,
    /// Something was heard of the session since its turn ended, or not long enough ago.
    #[error("the session is not idle")]
    NotIdle,
    #[error("{max} sessions go on already")]
    TooManySessions { max: usize },
    /// Whoever asks as the worker holds the guard no longer, or not the one that the session was taken under.
    #[error("another worker holds the guard, or none does")]
    LeaderLost,
    #[error("the lease is held by somebody else")]
    NotHolder,
    #[error("the lease is over: {end:?}")]
    Ended { lease: Fence, end: LeaseEnd },
    /// An upgrade must be to a stronger mode, a downgrade to a weaker one.
    #[error("{} is not {} than {}", to.as_str(), if *upgrade { "stronger" } else { "weaker" }, from.as_str())]
    WrongDirection { from: LeaseMode, to: LeaseMode, upgrade: bool },
    /// The lease has no authority: nothing can be spent of it or derived from it.
    #[error("the lease has no authority")]
    NoAuthority,
    /// The lease has authority, which is bound to who holds it and how.
    #[error("a lease with authority stays with its holder, and in its mode")]
    AuthorityBound,
    #[error("the lease does not allow what {what} names")]
    OutOfScope { what: &'static str },
    /// There is less left than this.
    #[error("more was asked for than is left of the budget")]
    BudgetExceeded { remaining: Budget },
    /// It would live longer than the lease that it was derived from.
    #[error("the lease that it is derived from is over in {} ms", remaining.as_millis())]
    OutlivesParent { remaining: TickDuration },
    /// Too much was derived from one lease.
    #[error("at most {max_descendants} leases stand below one, and at most {max_depth} above one")]
    TooManyDerived { max_descendants: usize, max_depth: usize },
    /// The ledger is short of room: what lives goes on, but nothing new begins.
    #[error("the disk has no room for this; leases that live can still end")]
    NoSpace,
    /// The ledger was restored from a copy, and who was granted something after the copy may still hold it.
    #[error("nothing is granted for another {} ms, because the ledger was restored from a copy", remaining.as_millis())]
    RestoreHold { until: Tick, remaining: TickDuration },
    /// All numbers are used up, after 2^53 grants in one ledger, or the lease would end beyond the end of time.
    #[error("this ledger has no number or no time left")]
    Exhausted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeaseEnd {
    Released(crate::lease::ReleaseReason),
    Expired,
    /// Ended by the registrar.
    Revoked(RevocationCause),
}

impl Decision {
    pub fn rejected(rejection: impl Into<Rejection>) -> Decision {
        Decision {
            events: Vec::new(),
            outcome: CommandOutcome::Rejected(rejection.into()),
            has_more_waiters: false,
        }
    }
}
