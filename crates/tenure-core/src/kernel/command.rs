//! Commands of the kernel. Names were parsed at the edge; amounts are checked when deciding.

use std::sync::Arc;

use super::agent::AgentCommand;
use super::event::{RevocationCause, WaitEnd};
use super::file::FileCommand;
use super::intent::IntentCommand;
use super::lease::lease_request::LeaseRequest;
use super::work::WorkCommand;
use crate::lease::ReleaseReason;
use crate::value::{Fence, Holder, IdempotencyKey, LeaseMode, Nonce, Principal, Tick, TickDuration, Ticket};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Grant all of these leases, or none.
    Acquire(Acquire),
    /// Move the end of a lease to `ttl` from now. It is never moved forward in time.
    Renew {
        lease: Fence,
        credential: LeaseCredential,
        /// Another length from now on; `None` keeps the lease's own.
        ttl: Option<TickDuration>,
    },
    Release {
        lease: Fence,
        claim: LeaseCredential,
        /// For the record; it changes nothing.
        reason: ReleaseReason,
    },
    /// Hand a lease to another holder, without a moment in which it is free.
    Transfer {
        lease: Fence,
        claim: LeaseCredential,
        to: Holder,
        principal: Principal,
        nonce: Nonce,
    },
    /// Hold in a stronger mode, if nobody is in the way.
    Upgrade(ChangeMode),
    /// Hold in a weaker mode, and let in who goes with it.
    Downgrade(ChangeMode),
    Revoke {
        lease: Fence,
        cause: RevocationCause,
        by: Principal,
        /// For people.
        detail: Arc<str>,
    },
    /// A holder is proven dead: whatever it holds and waits for ends at once.
    Reclaim {
        holder: Holder,
        by: Principal,
        /// The proof, for people.
        detail: Arc<str>,
    },
    Withdraw {
        ticket: Ticket,
        /// Whose it is; anybody else's request is refused.
        principal: Principal,
        end: WaitEnd,
    },
    /// Let in who waits and could be let in: for when nothing could be granted for a while.
    ServeWaiters {
        /// The most waiters to let in at once, so that no batch grows without bound.
        max_waiters: usize,
    },
    Agent(Box<AgentCommand>),
    File(Box<FileCommand>),
    Intent(Box<IntentCommand>),
    Work(Box<WorkCommand>),
    /// Announce what is over. Nothing depends on when this comes: what is over is free without it.
    Expire {
        /// The most leases and waits to announce at once, so that no batch grows without bound.
        max_ended: usize,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acquire {
    pub principal: Principal,
    pub holder: Holder,
    /// What is wanted: all of it or nothing, each on a resource of its own.
    pub requests: Vec<LeaseRequest>,
    pub contention_policy: ContentionPolicy,
    /// So that a repeated request finds its first answer.
    pub key: Option<IdempotencyKey>,
}

/// What the caller's face does about contention; see [`super::command`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentionPolicy {
    /// Refuse at once. The caller's own lease is in its way like anybody else's: a name is no proof, only
    /// the token is.
    Deny,
    /// Refuse at once, but renew what this holder already has in the same mode, and count it as granted.
    /// For faces that know who speaks.
    RefreshOwn,
    /// First come, first served, for at most this long.
    Queue {
        /// No grant once this is over.
        wait_timeout: TickDuration,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseCredential {
    /// The token of this very lease was presented and checked.
    Token,
    /// The face vouches that this holder, of this principal, speaks.
    Holder { holder: Holder, principal: Principal },
}

/// Another mode for a lease that is already held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeMode {
    pub lease: Fence,
    pub credential: LeaseCredential,
    pub mode: LeaseMode,
    pub nonce: Nonce,
}

impl Acquire {
    /// How many bytes its names and labels have.
    pub(crate) fn byte_size(&self) -> usize {
        let labels = |request: &LeaseRequest| {
            request.labels.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
        };
        let names = |request: &LeaseRequest| {
            request.resources().map(|resource| resource.as_str().len()).sum::<usize>()
        };
        let sizes = self.requests.iter().map(|request| names(request) + labels(request));
        self.holder.as_str().len() + self.principal.as_str().len() + sizes.sum::<usize>()
    }
}

/// What to do with a request that something is in the way of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentionAction {
    /// Tell the caller who is in the way.
    Deny,
    /// Draw a ticket that is good until then.
    Queue { until: Tick },
}

/// The verdict on a request at `now`, of which no part can be granted yet.
pub(crate) fn contention_action(contention: ContentionPolicy, now: Tick) -> ContentionAction {
    match contention {
        ContentionPolicy::Deny | ContentionPolicy::RefreshOwn => ContentionAction::Deny,
        // The end of patience that is no patience: nobody draws a ticket that is over at once.
        ContentionPolicy::Queue { wait_timeout: TickDuration(0) } => ContentionAction::Deny,
        ContentionPolicy::Queue { wait_timeout: patience } => {
            ContentionAction::Queue { until: now.saturating_add(patience) }
        }
    }
}

/// Whether a lease that the asking holder has itself, in the same mode, counts as granted.
pub(crate) fn refreshes_own_lease(contention: ContentionPolicy) -> bool {
    matches!(contention, ContentionPolicy::RefreshOwn)
}
