//! The leases and waiters of events.

use tenure_api::{Lease, Waiter};
use tenure_core::kernel::{
    ClockAnchor, Event, Fence, Holder, KernelState, Labels, LeaseEnd, LeaseMode, LeaseTerms, LedgerTag,
    Nonce, QueuedAcquire, Resource, Tick, TickDuration, WorkEvent,
};
use tenure_core::rules::remaining;

use crate::app::format_tick_with_anchor;
use crate::leases::{active_view, ended_view};

/// A lease right after an event. Most events are about leases, so the JSON is not made before a subscriber needs it.
#[derive(Debug)]
pub(super) struct LeaseSnapshot {
    fence: Fence,
    /// `None` if the lease began before the oldest event that can be read, and is forgotten since.
    pub(super) names: Option<(Resource, Holder)>,
    terms: LeaseTerms,
    end: Option<(Tick, LeaseEnd)>,
}

impl LeaseSnapshot {
    /// The lease of `event`, if it has one. `state` is the state right after the event, or a later one if the lease
    /// began before the oldest event that can be read.
    pub(super) fn new(event: &Event, state: &KernelState) -> Option<Self> {
        let (fence, end) = match event {
            Event::Issued(issued) => {
                let names = Some((issued.resource.clone(), issued.holder.clone()));
                return Some(Self { fence: issued.fence, names, terms: issued.terms.clone(), end: None });
            }
            Event::Released { lease, at, reason, .. } => (*lease, Some((*at, LeaseEnd::Released(*reason)))),
            Event::Expired { lease, at } => (*lease, Some((*at, LeaseEnd::Expired))),
            Event::Revoked { lease, at, cause, .. } => (*lease, Some((*at, LeaseEnd::Revoked(*cause)))),
            Event::Renewed { lease, .. } => (*lease, None),
            Event::Work(event) => match &**event {
                WorkEvent::Spent { lease, .. } => (*lease, None),
            },
            _ => return None,
        };
        let active = state.lease(fence).map(|lease| (lease.resource, lease.holder, lease.terms));
        let ended = || state.ended_lease(fence).map(|lease| (&lease.resource, &lease.holder, &lease.terms));
        let found = active.or_else(ended);
        let names = found.map(|(resource, holder, _)| (resource.clone(), holder.clone()));
        let mut terms = found.map_or_else(unknown_terms, |(.., terms)| terms.clone());
        if let Event::Renewed { expires_at, ttl, .. } = event {
            (terms.expires_at, terms.ttl) = (*expires_at, *ttl);
        }
        Some(Self { fence, names, terms, end })
    }

    pub(super) fn to_view(&self, at: Tick, tag: LedgerTag, anchor: ClockAnchor) -> Lease {
        let time = |tick| format_tick_with_anchor(anchor, tick);
        let names = self.names.as_ref();
        let names = names.map_or(("", ""), |(resource, holder)| (resource.as_str(), holder.as_str()));
        let mut lease = active_view(tag.lease_id(self.fence), self.fence, names, &self.terms, at, time);
        if self.names.is_none() {
            (lease.mode, lease.acquired_at) = Default::default();
            if self.terms.expires_at == Tick::default() {
                lease.expires_at = String::new();
            }
        }
        match self.end {
            None => lease,
            Some((ended_at, end)) => ended_view(lease, end, time(ended_at)),
        }
    }
}

fn unknown_terms() -> LeaseTerms {
    LeaseTerms {
        mode: LeaseMode::Exclusive,
        issued_at: Tick::default(),
        expires_at: Tick::default(),
        ttl: TickDuration::default(),
        renewals: 0,
        nonce: Nonce::default(),
        labels: Labels::default(),
    }
}

/// The resources that `queued` waits for.
pub(super) fn requested_resources(queued: &QueuedAcquire) -> impl Iterator<Item = &Resource> {
    queued.requests.iter().flat_map(|request| request.resources())
}

/// A waiter at `at`. `position` is 0 once it has left the queue.
pub(super) fn waiter_view(queued: &QueuedAcquire, position: usize, at: Tick, anchor: ClockAnchor) -> Waiter {
    Waiter {
        position,
        holder: queued.holder.as_str().to_owned(),
        mode: queued.requests.first().map_or_else(String::new, |request| request.mode.as_str().to_owned()),
        resources: requested_resources(queued).map(|resource| resource.as_str().to_owned()).collect(),
        since: format_tick_with_anchor(anchor, queued.at),
        waited_ms: at.since(queued.at).as_millis(),
        remaining_ms: remaining(at.0, queued.until.0) / 1_000,
        ..unknown_waiter(queued.ticket.0)
    }
}

/// A waiter of which only the ticket is known.
pub(super) fn unknown_waiter(ticket: u64) -> Waiter {
    let (holder, mode, since) = Default::default();
    Waiter { ticket, position: 0, holder, mode, resources: Vec::new(), since, waited_ms: 0, remaining_ms: 0 }
}
