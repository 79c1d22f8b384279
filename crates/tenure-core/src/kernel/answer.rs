//! What the kernel says: what to append, and what to tell the caller.

use thiserror::Error;

use super::agent::AgentAnswer;
use super::event::{Cause, Event};
use super::file::FileAnswer;
use super::intent::IntentAnswer;
use super::mode::Mode;
use super::name::{Holder, Resource};
use super::value::{Fence, Span, Tick, Ticket};
use crate::authority::Budget;
use crate::rules::names::InvalidInput;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What to append, in this order. A refusal may have events too: an expiry found on the way, or whom
    /// that let in.
    pub events: Vec<Event>,
    /// What to tell the caller once the events are durable.
    pub answer: Answer,
    /// More waiters have their turn than one decision lets in: [`Serve`](super::Command::Serve) lets in the rest.
    pub has_unserved: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
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
    Continued {
        before: Fence,
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
    Agent(Box<AgentAnswer>),
    File(Box<FileAnswer>),
    Intent(Box<IntentAnswer>),
    Spent {
        lease: Fence,
        /// What was left then.
        left: Budget,
    },
    Refused(Refusal),
}

/// Why not. A refusal is an answer, not an error: nothing is broken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    #[error(transparent)]
    Invalid(#[from] InvalidInput),
    /// A time to live outside of what is permitted. It is never clamped: the caller counts on what it asked for.
    #[error("a lease lasts from {} to {} ms; {} ms were asked for", shortest.as_millis(), longest.as_millis(), asked.as_millis())]
    TtlOutOfRange { asked: Span, shortest: Span, longest: Span },
    /// Somebody else has it, or waits for it and came first.
    #[error("{resource} is held by {holder}")]
    Held {
        resource: Resource,
        holder: Holder,
        /// When that one's lease, or wait, is over at the latest.
        until: Tick,
        waiting: usize,
    },
    #[error("{most} wait already for {what}")]
    QueueFull {
        /// For what, or on whose behalf.
        what: String,
        most: usize,
    },
    /// Waiting would never end: each of these waits for the next, and the last for the first.
    #[error("waiting would close a circle of {} holders", cycle.len())]
    Deadlock {
        /// The circle, beginning with the caller.
        cycle: Vec<Holder>,
    },
    /// The principal holds or waits for as many leases as it may.
    #[error("the quota of {most} leases is used up")]
    QuotaExceeded { most: usize },
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
    #[error("the agent's priority is {has}, and stays so until its attempt is over")]
    PriorityFixed { has: u64 },
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
    #[error("{most} sessions go on already")]
    TooManySessions { most: usize },
    /// Whoever asks as the worker holds the guard no longer, or not the one that the session was taken under.
    #[error("another worker holds the guard, or none does")]
    GuardLost,
    #[error("the lease is held by somebody else")]
    NotHolder,
    #[error("the lease is over: {end:?}")]
    Over { lease: Fence, end: End },
    /// An upgrade must be to a stronger mode, a downgrade to a weaker one.
    #[error("{} is not {} than {}", to.as_str(), if *upgrade { "stronger" } else { "weaker" }, from.as_str())]
    WrongDirection { from: Mode, to: Mode, upgrade: bool },
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
    BudgetExceeded { left: Budget },
    /// It would live longer than the lease that it was derived from.
    #[error("the lease that it is derived from is over in {} ms", remaining.as_millis())]
    OutlivesParent { remaining: Span },
    /// Too much was derived from one lease.
    #[error("at most {most} leases stand below one, and at most {deep} above one")]
    TreeFull { most: usize, deep: usize },
    /// The ledger is short of room: what lives goes on, but nothing new begins.
    #[error("the disk has no room for this; leases that live can still end")]
    NoSpace,
    /// The ledger was restored from a copy, and who was granted something after the copy may still hold it.
    #[error("nothing is granted for another {} ms, because the ledger was restored from a copy", remaining.as_millis())]
    HeldBack { until: Tick, remaining: Span },
    /// All numbers are used up, after 2^53 grants in one ledger, or the lease would end beyond the end of time.
    #[error("this ledger has no number or no time left")]
    Exhausted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    Released(crate::lease::ReleaseReason),
    Expired,
    /// Ended by the registrar.
    Revoked(Cause),
}

impl Decision {
    pub fn refused(refusal: impl Into<Refusal>) -> Decision {
        Decision { events: Vec::new(), answer: Answer::Refused(refusal.into()), has_unserved: false }
    }
}
