//! What happened, in the past tense. State is only ever what these add up to.

use std::sync::Arc;

use super::agent::AgentEvent;
use super::file::FileEvent;
use super::intent::IntentEvent;
use super::lease::lease_request::LeaseRequest;
use super::work::WorkEvent;
use crate::authority::Authority;
use crate::lease::ReleaseReason;
use crate::value::{
    Fence, Holder, IdempotencyKey, Labels, LeaseMode, Nonce, Principal, Resource, Tick, TickDuration, Ticket,
};

/// Names the types of an enum of events: first its own, then those of the APIs that it holds.
macro_rules! type_names {
    ($event:ident { $($own:ident = $name:literal,)+ } $($api:ident($nested:ident)),*) => {
        impl $event {
            pub const TYPE_NAMES: [&str; [$($name),+].len() $(+ $nested::TYPE_NAMES.len())*] =
                $crate::kernel::event::concat_names(&[&[$($name),+], $(&$nested::TYPE_NAMES),*]);

            /// Its type, as records and those who listen know it.
            pub const fn type_name(&self) -> &'static str {
                match self {
                    $($event::$own { .. } => $name,)+
                    $($event::$api(event) => event.type_name(),)*
                }
            }
        }
    };
}
pub(crate) use type_names;

/// The names of all parts, one after the other.
pub(crate) const fn concat_names<const COUNT: usize>(parts: &[&[&'static str]]) -> [&'static str; COUNT] {
    let (mut all, mut count, mut part) = ([""; COUNT], 0, 0);
    while part < parts.len() {
        let mut place = 0;
        while place < parts[part].len() {
            all[count] = parts[part][place];
            (count, place) = (count + 1, place + 1);
        }
        part += 1;
    }
    all
}

/// One thing that happened. How it is stored is the business of [`super::codec`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Issued(IssuedLease),
    Renewed {
        lease: Fence,
        at: Tick,
        expires_at: Tick,
        ttl: TickDuration,
    },
    Released {
        lease: Fence,
        at: Tick,
        /// Its holder, as records name it.
        by: Holder,
        reason: ReleaseReason,
    },
    Expired {
        lease: Fence,
        /// When it was noticed; its end was no later.
        at: Tick,
    },
    Revoked {
        lease: Fence,
        at: Tick,
        cause: RevocationCause,
        by: Principal,
        /// For people.
        detail: Arc<str>,
    },
    Queued(QueuedAcquire),
    /// Somebody waits no longer, and got nothing.
    Left {
        ticket: Ticket,
        at: Tick,
        end: WaitEnd,
    },
    /// Something happened to files, or to those who change them.
    File(Box<FileEvent>),
    Intent(Box<IntentEvent>),
    Agent(Box<AgentEvent>),
    Work(Box<WorkEvent>),
    /// Time has come this far.
    Marked {
        at: Tick,
        reading: ClockReading,
    },
    Resumed {
        /// The tick at which it goes on.
        at: Tick,
        reading: ClockReading,
        /// The wall time, in Unix nanoseconds, that stands for this tick.
        wall_anchor: u64,
        /// What the wall clock really said. For audit.
        wall_clock: u64,
    },
    /// The ledger is a copy that was put back: what the original did after it is unknown.
    Restored {
        at: Tick,
        epoch: u64,
        /// Every number up to this one may have been used by the original.
        fence: Fence,
        /// Nothing is granted before this tick: by then whatever the original granted is over.
        hold_until: Tick,
    },
}

type_names! {
    Event {
        Issued = "lease.issued",
        Renewed = "lease.renewed",
        Released = "lease.released",
        Expired = "lease.expired",
        Revoked = "lease.revoked",
        Queued = "wait.queued",
        Left = "wait.left",
        Marked = "clock.mark",
        Resumed = "clock.resumed",
        Restored = "writer.restored",
    }
    Intent(IntentEvent), Agent(AgentEvent), Work(WorkEvent), File(FileEvent)
}

impl Event {
    pub fn ended_lease(&self) -> Option<Fence> {
        match self {
            Event::Released { lease, .. } | Event::Expired { lease, .. } | Event::Revoked { lease, .. } => {
                Some(*lease)
            }
            _ => None,
        }
    }

    pub fn occurred_at(&self) -> Tick {
        match self {
            Event::Issued(issued) => issued.terms.issued_at,
            Event::Queued(queued) => queued.at,
            Event::File(event) => event.occurred_at(),
            Event::Intent(event) => event.occurred_at(),
            Event::Agent(event) => event.occurred_at(),
            Event::Work(event) => event.occurred_at(),
            Event::Renewed { at, .. }
            | Event::Released { at, .. }
            | Event::Expired { at, .. }
            | Event::Revoked { at, .. }
            | Event::Left { at, .. }
            | Event::Marked { at, .. }
            | Event::Resumed { at, .. }
            | Event::Restored { at, .. } => *at,
        }
    }
}

/// What was promised to a lease's holder; a renewal changes the end, the TTL and the count of renewals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseTerms {
    pub mode: LeaseMode,
    pub issued_at: Tick,
    /// The lease is expired from this tick on.
    pub expires_at: Tick,
    pub ttl: TickDuration,
    pub renewals: u32,
    /// The lease's token is made from it. It is kept after the end: a late caller must still prove that the lease was its own.
    pub nonce: Nonce,
    /// For people and programs of the caller's.
    pub labels: Labels,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedLease {
    pub fence: Fence,
    pub resource: Resource,
    pub holder: Holder,
    pub principal: Principal,
    /// `renewals` is 0: the record of this event does not store it.
    pub terms: LeaseTerms,
    /// Under which key it was asked for.
    pub key: Option<IdempotencyKey>,
    /// The waiter that this answers.
    pub ticket: Option<Ticket>,
    pub continues: Option<Fence>,
    /// What its holder may do, if it is a lease on work that says so.
    pub authority: Option<Arc<Authority>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedAcquire {
    pub ticket: Ticket,
    pub holder: Holder,
    pub principal: Principal,
    pub requests: Vec<LeaseRequest>,
    pub at: Tick,
    /// No grant at or after this tick.
    pub until: Tick,
    /// Under which key it was asked for.
    pub key: Option<IdempotencyKey>,
}

crate::text_enum! {
    /// Why the registrar ended a lease that its holder had not given back.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum RevocationCause {
        Revoked = "REVOKED",
        /// Its holder is proven dead.
        Reclaimed = "RECLAIMED",
        /// A worker cleaned its own domain at its start.
        Wiped = "WIPED",
        /// The connection that it belonged to is gone.
        Disconnected = "DISCONNECTED",
        /// It goes on under a new number: another holder, or another mode.
        Transferred = "TRANSFERRED",
        /// Wait-die ended it for an older agent.
        Died = "DIED",
    }
}

crate::text_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum WaitEnd {
        /// Its time was over before its turn came.
        TimedOut = "TIMED_OUT",
        Withdrawn = "WITHDRAWN",
        /// The waiter's connection or process is gone.
        Gone = "GONE",
    }
}

/// What a clock said, and which clock that was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockReading {
    /// Boot id and time namespace: microseconds of two clocks mean nothing to each other.
    pub clock: Arc<str>,
    /// Microseconds since that clock began.
    pub microseconds: u64,
}
