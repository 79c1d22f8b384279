//! What each face does when something is in the way: the one place where that differs.
//!
//! The kernel finds out what is in the way and carries out the verdict; the face chooses by the
//! [`Contention`] that it puts into its request. A face with another policy adds a variant there and its
//! line here: control and intents refuse and refresh their own, plain leases queue.

use super::command::ContentionPolicy;
use super::newtypes::{Tick, TickDuration};

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
