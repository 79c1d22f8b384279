//! The life of each lease and of each waiter, as the ledger tells it, in moments of the history.

use std::collections::{BTreeMap, HashMap};

use super::entry::{LedgerEntry, LedgerEvent};
use crate::operation::LeaseMode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LedgerInstant {
    pub(super) seq: u64,
    /// Microseconds of the history's clock.
    pub(super) at: u64,
}

#[derive(Debug, Clone)]
pub(super) struct LeaseTimeline<'a> {
    pub(super) id: &'a str,
    pub(super) resource: &'a str,
    pub(super) holder: &'a str,
    pub(super) mode: LeaseMode,
    pub(super) ttl: u64,
    pub(super) ticket: Option<u64>,
    pub(super) continues: Option<u64>,
    /// When it began, when it was renewed, and its end from then on.
    pub(super) terms: Vec<(LedgerInstant, u64)>,
    /// When and how it was ended; an expiry as it was announced.
    pub(super) end: Option<(LedgerInstant, LeaseEnd)>,
    pub(super) entries: Vec<&'a LedgerEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaseEnd {
    Expired,
    Released,
    Revoked,
}

#[derive(Debug, Clone)]
pub(super) struct WaitInterval<'a> {
    pub(super) holder: &'a str,
    pub(super) requests: &'a [(String, LeaseMode)],
    pub(super) from: u64,
    pub(super) to: u64,
}

#[derive(Debug, Default)]
pub(super) struct Timeline<'a> {
    pub(super) leases: BTreeMap<u64, LeaseTimeline<'a>>,
    pub(super) by_resource: HashMap<&'a str, Vec<u64>>,
    pub(super) wait_intervals: BTreeMap<u64, WaitInterval<'a>>,
    /// Whether the moments are moments of the history.
    pub(super) has_times: bool,
    /// What a tick is on the history's clock, from each of these ticks on.
    offsets: BTreeMap<u64, i128>,
    pub(super) moments: Vec<LedgerInstant>,
}

impl LeaseTimeline<'_> {
    pub(super) fn started(&self) -> LedgerInstant {
        self.terms[0].0
    }

    /// Its end as it stood last.
    pub(super) fn expires_at(&self) -> u64 {
        self.terms.last().expect("a lease begins with a term").1
    }

    /// When it was over, announced or not.
    pub(super) fn ended_at(&self) -> u64 {
        match self.end {
            Some((moment, LeaseEnd::Released | LeaseEnd::Revoked)) => moment.at,
            _ => self.expires_at(),
        }
    }
}

impl<'a> Timeline<'a> {
    pub(super) fn new(entries: &'a [LedgerEntry], clock: Option<&str>) -> Self {
        let mut timeline = Timeline::default();
        let mut clocks = entries.iter().filter_map(|entry| match &entry.event {
            LedgerEvent::Clock { clock, .. } => Some(clock.as_str()),
            _ => None,
        });
        timeline.has_times = clock.is_some() && clocks.all(|name| Some(name) == clock);
        for entry in entries {
            if let LedgerEvent::Clock { microseconds, .. } = entry.event {
                timeline.offsets.insert(entry.at, i128::from(microseconds) - i128::from(entry.at));
            }
        }
        entries.iter().for_each(|entry| timeline.apply(entry));
        timeline
    }

    /// The moment of a tick. Without a common clock, ticks stay ticks.
    pub(super) fn instant_of(&self, tick: u64) -> u64 {
        let offset = if self.has_times {
            self.offsets.range(..=tick).next_back().or(self.offsets.first_key_value())
        } else {
            None
        };
        let moment = i128::from(tick) + offset.map_or(0, |(_, offset)| *offset);
        u64::try_from(moment).unwrap_or(0)
    }

    fn apply(&mut self, entry: &'a LedgerEntry) {
        let moment = LedgerInstant { seq: entry.seq, at: self.instant_of(entry.at) };
        self.moments.push(moment);
        match &entry.event {
            LedgerEvent::Issued { fence, id, resource, holder, mode, expires_at, ttl, ticket, continues } => {
                let terms = vec![(moment, self.moment_of_end(entry.at, *expires_at))];
                let (ttl, mode, ticket, continues) = (*ttl, *mode, *ticket, *continues);
                let lease = LeaseTimeline {
                    id,
                    resource,
                    holder,
                    mode,
                    ttl,
                    ticket,
                    continues,
                    terms,
                    end: None,
                    entries: vec![entry],
                };
                // One that is there already is the book's business.
                if self.leases.insert(*fence, lease).is_none() {
                    self.by_resource.entry(resource).or_default().push(*fence);
                }
                if let Some(wait) = ticket.and_then(|ticket| self.wait_intervals.get_mut(&ticket)) {
                    wait.to = wait.to.min(moment.at);
                }
            }
            LedgerEvent::Renewed { fence, expires_at } => {
                let end = self.moment_of_end(entry.at, *expires_at);
                if let Some(lease) = self.leases.get_mut(fence) {
                    lease.terms.push((moment, end));
                    lease.entries.push(entry);
                }
            }
            LedgerEvent::Released { fence } => self.end(entry, *fence, moment, LeaseEnd::Released),
            LedgerEvent::Expired { fence } => self.end(entry, *fence, moment, LeaseEnd::Expired),
            LedgerEvent::Revoked { fence, .. } => self.end(entry, *fence, moment, LeaseEnd::Revoked),
            LedgerEvent::Queued { ticket, holder, requests: wants, until } => {
                let to = self.moment_of_end(entry.at, *until);
                self.wait_intervals
                    .insert(*ticket, WaitInterval { holder, requests: wants, from: moment.at, to });
            }
            LedgerEvent::WaitEnded { ticket } => {
                if let Some(wait) = self.wait_intervals.get_mut(ticket) {
                    wait.to = wait.to.min(moment.at);
                }
            }
            LedgerEvent::Clock { .. } => {}
        }
    }

    /// The moment of an end that was set at a tick: lengths are the same on both clocks.
    fn moment_of_end(&self, set_at: u64, tick: u64) -> u64 {
        self.instant_of(set_at).saturating_add(tick.saturating_sub(set_at))
    }

    fn end(&mut self, entry: &'a LedgerEntry, fence: u64, moment: LedgerInstant, end: LeaseEnd) {
        if let Some(lease) = self.leases.get_mut(&fence).filter(|lease| lease.end.is_none()) {
            lease.end = Some((moment, end));
            lease.entries.push(entry);
        }
    }

    /// The leases of a resource, in the order of their fences.
    pub(super) fn leases_on<'b>(
        &'b self,
        resource: &str,
    ) -> impl Iterator<Item = (u64, &'b LeaseTimeline<'a>)> + use<'a, 'b> {
        let fences = self.by_resource.get(resource).map_or(&[][..], Vec::as_slice);
        fences.iter().filter_map(|fence| Some((*fence, self.leases.get(fence)?)))
    }
}
