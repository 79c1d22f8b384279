//! What an event is about, as it was right after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_api::{Lease, LeaseState, Waiter};
use tenure_core::kernel::{
    Anchor, End, EndedLease, Event, Fence, Holder, Issued, Labels, LeaseView, LedgerTag, Mode, Queued,
    Resource, Span, Terms, Tick, TicketView, Want, WorkEvent,
};
use tenure_core::rules::time::remaining;

use crate::http::names::time_by;
use crate::http::refusal::end_name;

#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) fence: Fence,
    /// How it began. Nothing where that is forgotten: then the event itself is all that is known.
    pub(super) start: Option<Start>,
    pub(super) expires_at: Tick,
    pub(super) ttl: Span,
    pub(super) renewals: u32,
    pub(super) end: Option<(Tick, End)>,
    /// Whether this is how it was later: then its renewals are counted already.
    pub(super) is_later: bool,
}

/// What of a lease never changes.
#[derive(Debug, Clone)]
pub(super) struct Start {
    pub(super) resource: Resource,
    holder: Holder,
    mode: Mode,
    at: Tick,
    labels: Labels,
}

impl Facts {
    pub(super) fn of_issued(issued: &Issued) -> Self {
        let start = Start {
            resource: issued.resource.clone(),
            holder: issued.holder.clone(),
            mode: issued.mode,
            at: issued.at,
            labels: issued.labels.clone(),
        };
        let Issued { fence, expires_at, ttl, .. } = *issued;
        Self { fence, start: Some(start), expires_at, ttl, renewals: 0, end: None, is_later: false }
    }

    pub(super) fn of_live(lease: LeaseView<'_>) -> Self {
        Self::of_terms(lease.fence, lease.resource, lease.holder, lease.terms)
    }

    /// A lease that is over, as it was before its end.
    pub(super) fn of_ended(lease: &EndedLease) -> Self {
        Self::of_terms(lease.fence, &lease.resource, &lease.holder, &lease.terms)
    }

    fn of_terms(fence: Fence, resource: &Resource, holder: &Holder, terms: &Terms) -> Self {
        let start = Start {
            resource: resource.clone(),
            holder: holder.clone(),
            mode: terms.mode,
            at: terms.issued_at,
            labels: terms.labels.clone(),
        };
        let Terms { expires_at, ttl, renewals, .. } = *terms;
        Self { fence, start: Some(start), expires_at, ttl, renewals, end: None, is_later: false }
    }

    fn unknown(fence: Fence) -> Self {
        let (expires_at, ttl) = (Tick::default(), Span::default());
        Self { fence, start: None, expires_at, ttl, renewals: 0, end: None, is_later: true }
    }

    /// The lease that `event` is about, right after it. `before` is what it was.
    pub(super) fn after(event: &Event, before: impl Fn(Fence) -> Option<Facts>) -> Option<Facts> {
        let known = |fence: &Fence| before(*fence).unwrap_or_else(|| Facts::unknown(*fence));
        let ended = |fence: &Fence, at: &Tick, end: End| Facts { end: Some((*at, end)), ..known(fence) };
        Some(match event {
            Event::Issued(issued) => Facts::of_issued(issued),
            Event::Renewed { lease, expires_at, ttl, .. } => {
                let before = known(lease);
                let renewals = before.renewals.saturating_add(u32::from(!before.is_later));
                Facts { expires_at: *expires_at, ttl: *ttl, renewals, ..before }
            }
            Event::Released { lease, at, reason, .. } => ended(lease, at, End::Released(*reason)),
            Event::Expired { lease, at } => ended(lease, at, End::Expired),
            Event::Revoked { lease, at, cause, .. } => ended(lease, at, End::Revoked(*cause)),
            Event::Work(event) => match &**event {
                WorkEvent::Spent { lease, .. } => known(lease),
            },
            _ => return None,
        })
    }

    /// As it is told. Where something is not known any more, it is empty.
    pub(super) fn shown(&self, at: Tick, tag: LedgerTag, anchor: Anchor) -> Lease {
        let text = |of: fn(&Start) -> &str| {
            self.start.as_ref().map_or_else(String::new, |start| of(start).to_owned())
        };
        let labels = |start: &Start| {
            start.labels.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        let time = |tick: Tick| if tick == Tick::default() { String::new() } else { time_by(anchor, tick) };
        let remaining_ms = if self.end.is_some() { 0 } else { remaining(at.0, self.expires_at.0) / 1_000 };
        Lease {
            id: tag.lease_id(self.fence),
            resource: text(|start| start.resource.as_str()),
            holder: text(|start| start.holder.as_str()),
            mode: text(|start| start.mode.as_str()),
            state: match self.end {
                None => LeaseState::Active,
                Some((_, End::Expired)) => LeaseState::Expired,
                Some(_) => LeaseState::Released,
            },
            fence: self.fence.0,
            ttl_ms: self.ttl.as_millis(),
            remaining_ms,
            acquired_at: self.start.as_ref().map_or_else(String::new, |start| time_by(anchor, start.at)),
            expires_at: time(self.expires_at),
            renewal_count: self.renewals,
            labels: self.start.as_ref().map_or_else(BTreeMap::new, labels),
            ended_at: self.end.map(|(tick, _)| time_by(anchor, tick)),
            end: self.end.map(|(_, end)| end_name(end).to_owned()),
            recall: None,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Wait {
    pub(super) ticket: u64,
    /// 0 where it has no place, or nobody remembers which.
    pub(super) position: usize,
    /// Nothing where its beginning is forgotten.
    pub(super) queued: Option<Arc<Asked>>,
}

/// What a waiter asked for. What its tokens would be made from is not in it.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) holder: Holder,
    pub(super) wants: Vec<(Resource, Mode)>,
    pub(super) since: Tick,
    pub(super) until: Tick,
}

impl Asked {
    pub(super) fn of(queued: &Queued) -> Self {
        let (holder, wants) = (queued.holder.clone(), wanted(&queued.wants));
        Self { holder, wants, since: queued.at, until: queued.until }
    }

    pub(super) fn of_waiting(waiting: TicketView<'_>) -> Self {
        let (holder, wants) = (waiting.holder.clone(), wanted(waiting.wants));
        Self { holder, wants, since: waiting.since, until: waiting.until }
    }
}

fn wanted(wants: &[Want]) -> Vec<(Resource, Mode)> {
    let each = |want: &Want| want.resources().map(|name| (name.clone(), want.mode)).collect::<Vec<_>>();
    wants.iter().flat_map(each).collect()
}

impl Wait {
    pub(super) fn shown(&self, at: Tick, anchor: Anchor) -> Waiter {
        let known = self.queued.as_deref();
        let wants = known.map_or(&[][..], |asked| &asked.wants);
        Waiter {
            ticket: self.ticket,
            position: self.position,
            holder: known.map_or_else(String::new, |asked| asked.holder.as_str().to_owned()),
            mode: wants.first().map_or_else(String::new, |(_, mode)| mode.as_str().to_owned()),
            resources: wants.iter().map(|(resource, _)| resource.as_str().to_owned()).collect(),
            since: known.map_or_else(String::new, |asked| time_by(anchor, asked.since)),
            waited_ms: known.map_or(0, |asked| at.since(asked.since).as_millis()),
            remaining_ms: known.map_or(0, |asked| remaining(at.0, asked.until.0) / 1_000),
        }
    }
}
