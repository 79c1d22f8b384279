//! The lease or waiter of an event, as it was right after it.

use std::sync::Arc;

use tenure_api::{Lease, Waiter};
use tenure_core::kernel::{
    ClockAnchor, EndedLease, Event, Fence, Holder, IssuedLease, Labels, LeaseEnd, LeaseMode, LeaseRequest,
    LeaseTerms, LeaseView, LedgerTag, Nonce, QueueTicketView, QueuedAcquire, Resource, Tick, TickDuration,
    WorkEvent,
};
use tenure_core::rules::remaining;

use crate::app::format_tick_with_anchor;
use crate::leases::{active_view, ended_view};

#[derive(Debug, Clone)]
pub(super) struct LeaseSnapshot {
    pub(super) fence: Fence,
    /// `None` if the start of the lease is forgotten: then `terms` has only what the event itself says.
    pub(super) names: Option<(Resource, Holder)>,
    pub(super) terms: LeaseTerms,
    pub(super) end: Option<(Tick, LeaseEnd)>,
    /// Whether this is how it was later: then its renewals are counted already.
    pub(super) is_later: bool,
}

impl LeaseSnapshot {
    pub(super) fn of_issued(issued: &IssuedLease) -> Self {
        Self::new(issued.fence, &issued.resource, &issued.holder, &issued.terms)
    }

    pub(super) fn of_active(lease: LeaseView<'_>) -> Self {
        Self::new(lease.fence, lease.resource, lease.holder, lease.terms)
    }

    /// A lease that is over, as it was before its end.
    pub(super) fn of_ended(lease: &EndedLease) -> Self {
        Self::new(lease.fence, &lease.resource, &lease.holder, &lease.terms)
    }

    fn new(fence: Fence, resource: &Resource, holder: &Holder, terms: &LeaseTerms) -> Self {
        let names = Some((resource.clone(), holder.clone()));
        Self { fence, names, terms: terms.clone(), end: None, is_later: false }
    }

    fn unknown(fence: Fence) -> Self {
        let terms = LeaseTerms {
            mode: LeaseMode::Exclusive,
            issued_at: Tick::default(),
            expires_at: Tick::default(),
            ttl: TickDuration::default(),
            renewals: 0,
            nonce: Nonce::default(),
            labels: Labels::default(),
        };
        Self { fence, names: None, terms, end: None, is_later: true }
    }

    /// The lease that `event` is about, right after it. `before` is what it was.
    pub(super) fn after_event(
        event: &Event,
        before: impl Fn(Fence) -> Option<LeaseSnapshot>,
    ) -> Option<LeaseSnapshot> {
        let known = |fence: &Fence| before(*fence).unwrap_or_else(|| LeaseSnapshot::unknown(*fence));
        let ended =
            |fence: &Fence, at: &Tick, end: LeaseEnd| LeaseSnapshot { end: Some((*at, end)), ..known(fence) };
        Some(match event {
            Event::Issued(issued) => LeaseSnapshot::of_issued(issued),
            Event::Renewed { lease, expires_at, ttl, .. } => {
                let before = known(lease);
                let renewals = before.terms.renewals.saturating_add(u32::from(!before.is_later));
                let terms = LeaseTerms { expires_at: *expires_at, ttl: *ttl, renewals, ..before.terms };
                LeaseSnapshot { terms, ..before }
            }
            Event::Released { lease, at, reason, .. } => ended(lease, at, LeaseEnd::Released(*reason)),
            Event::Expired { lease, at } => ended(lease, at, LeaseEnd::Expired),
            Event::Revoked { lease, at, cause, .. } => ended(lease, at, LeaseEnd::Revoked(*cause)),
            Event::Work(event) => match &**event {
                WorkEvent::Spent { lease, .. } => known(lease),
            },
            _ => return None,
        })
    }

    /// As it is told. Where something is not known any more, it is empty.
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

#[derive(Debug, Clone)]
pub(super) struct WaitSnapshot {
    pub(super) ticket: u64,
    /// 0 where it has no place, or nobody remembers which.
    pub(super) position: usize,
    /// Nothing where its beginning is forgotten.
    pub(super) request: Option<Arc<WaitRequest>>,
}

/// What a waiter asked for. What its tokens would be made from is not in it.
#[derive(Debug)]
pub(super) struct WaitRequest {
    pub(super) holder: Holder,
    pub(super) requested: Vec<(Resource, LeaseMode)>,
    pub(super) since: Tick,
    pub(super) until: Tick,
}

impl WaitRequest {
    pub(super) fn of(queued: &QueuedAcquire) -> Self {
        let (holder, requested) = (queued.holder.clone(), requested_resources(&queued.requests));
        Self { holder, requested, since: queued.at, until: queued.until }
    }

    pub(super) fn of_waiting(waiting: QueueTicketView<'_>) -> Self {
        let (holder, requested) = (waiting.holder.clone(), requested_resources(waiting.requests));
        Self { holder, requested, since: waiting.since, until: waiting.until }
    }
}

fn requested_resources(requests: &[LeaseRequest]) -> Vec<(Resource, LeaseMode)> {
    let each = |request: &LeaseRequest| {
        request.resources().map(|name| (name.clone(), request.mode)).collect::<Vec<_>>()
    };
    requests.iter().flat_map(each).collect()
}

impl WaitSnapshot {
    pub(super) fn to_view(&self, at: Tick, anchor: ClockAnchor) -> Waiter {
        let known = self.request.as_deref();
        let requested = known.map_or(&[][..], |request| &request.requested);
        Waiter {
            ticket: self.ticket,
            position: self.position,
            holder: known.map_or_else(String::new, |request| request.holder.as_str().to_owned()),
            mode: requested.first().map_or_else(String::new, |(_, mode)| mode.as_str().to_owned()),
            resources: requested.iter().map(|(resource, _)| resource.as_str().to_owned()).collect(),
            since: known.map_or_else(String::new, |request| format_tick_with_anchor(anchor, request.since)),
            waited_ms: known.map_or(0, |request| at.since(request.since).as_millis()),
            remaining_ms: known.map_or(0, |request| remaining(at.0, request.until.0) / 1_000),
        }
    }
}
