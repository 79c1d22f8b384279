//! What an event is about, as it was right after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_api::{Lease, LeaseState, Waiter};
use tenure_core::kernel::{
    ClockAnchor, EndedLease, Event, Fence, Holder, IssuedLease, Labels, LeaseEnd, LeaseMode, LeaseRequest,
    LeaseTerms, LeaseView, LedgerTag, QueueTicketView, QueuedAcquire, Resource, Tick, TickDuration,
    WorkEvent,
};
use tenure_core::rules::time::remaining;

use crate::clock::format_tick_with_anchor;
use crate::http::reply_error::end_reason_name;

#[derive(Debug, Clone)]
pub(super) struct LeaseSnapshot {
    pub(super) fence: Fence,
    /// How it began. Nothing where that is forgotten: then the event itself is all that is known.
    pub(super) start: Option<LeaseOrigin>,
    pub(super) expires_at: Tick,
    pub(super) ttl: TickDuration,
    pub(super) renewals: u32,
    pub(super) end: Option<(Tick, LeaseEnd)>,
    /// Whether this is how it was later: then its renewals are counted already.
    pub(super) is_later: bool,
}

/// What of a lease never changes.
#[derive(Debug, Clone)]
pub(super) struct LeaseOrigin {
    pub(super) resource: Resource,
    holder: Holder,
    mode: LeaseMode,
    at: Tick,
    labels: Labels,
}

impl LeaseSnapshot {
    pub(super) fn of_issued(issued: &IssuedLease) -> Self {
        let start = LeaseOrigin {
            resource: issued.resource.clone(),
            holder: issued.holder.clone(),
            mode: issued.terms.mode,
            at: issued.terms.issued_at,
            labels: issued.terms.labels.clone(),
        };
        let LeaseTerms { expires_at, ttl, renewals, .. } = issued.terms;
        Self {
            fence: issued.fence,
            start: Some(start),
            expires_at,
            ttl,
            renewals,
            end: None,
            is_later: false,
        }
    }

    pub(super) fn of_active(lease: LeaseView<'_>) -> Self {
        Self::of_terms(lease.fence, lease.resource, lease.holder, lease.terms)
    }

    /// A lease that is over, as it was before its end.
    pub(super) fn of_ended(lease: &EndedLease) -> Self {
        Self::of_terms(lease.fence, &lease.resource, &lease.holder, &lease.terms)
    }

    fn of_terms(fence: Fence, resource: &Resource, holder: &Holder, terms: &LeaseTerms) -> Self {
        let start = LeaseOrigin {
            resource: resource.clone(),
            holder: holder.clone(),
            mode: terms.mode,
            at: terms.issued_at,
            labels: terms.labels.clone(),
        };
        let LeaseTerms { expires_at, ttl, renewals, .. } = *terms;
        Self { fence, start: Some(start), expires_at, ttl, renewals, end: None, is_later: false }
    }

    fn unknown(fence: Fence) -> Self {
        let (expires_at, ttl) = (Tick::default(), TickDuration::default());
        Self { fence, start: None, expires_at, ttl, renewals: 0, end: None, is_later: true }
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
                let renewals = before.renewals.saturating_add(u32::from(!before.is_later));
                LeaseSnapshot { expires_at: *expires_at, ttl: *ttl, renewals, ..before }
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
        let text = |of: fn(&LeaseOrigin) -> &str| {
            self.start.as_ref().map_or_else(String::new, |start| of(start).to_owned())
        };
        let labels = |start: &LeaseOrigin| {
            start.labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        let time = |tick: Tick| {
            if tick == Tick::default() { String::new() } else { format_tick_with_anchor(anchor, tick) }
        };
        let remaining_ms = if self.end.is_some() { 0 } else { remaining(at.0, self.expires_at.0) / 1_000 };
        Lease {
            id: tag.lease_id(self.fence),
            resource: text(|start| start.resource.as_str()),
            holder: text(|start| start.holder.as_str()),
            mode: text(|start| start.mode.as_str()),
            state: match self.end {
                None => LeaseState::Active,
                Some((_, LeaseEnd::Expired)) => LeaseState::Expired,
                Some(_) => LeaseState::Released,
            },
            fence: self.fence.0,
            ttl_ms: self.ttl.as_millis(),
            remaining_ms,
            acquired_at: self
                .start
                .as_ref()
                .map_or_else(String::new, |start| format_tick_with_anchor(anchor, start.at)),
            expires_at: time(self.expires_at),
            renewal_count: self.renewals,
            labels: self.start.as_ref().map_or_else(BTreeMap::new, labels),
            ended_at: self.end.map(|(tick, _)| format_tick_with_anchor(anchor, tick)),
            end: self.end.map(|(_, end)| end_reason_name(end).to_owned()),
            recall: None,
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
