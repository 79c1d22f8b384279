//! The life of each lease and of each waiter, as the ledger tells it, in moments of the history.

use std::collections::{BTreeMap, HashMap};

use super::entry::{Entry, Event};
use crate::operation::Mode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) seq: u64,
    /// Microseconds of the history's clock.
    pub(super) at: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Lease<'a> {
    pub(super) id: &'a str,
    pub(super) resource: &'a str,
    pub(super) holder: &'a str,
    pub(super) mode: Mode,
    pub(super) ttl: u64,
    pub(super) ticket: Option<u64>,
    pub(super) continues: Option<u64>,
    /// When it began, when it was renewed, and its end from then on.
    pub(super) terms: Vec<(Moment, u64)>,
    /// When and how it was ended; an expiry as it was announced.
    pub(super) end: Option<(Moment, End)>,
    pub(super) entries: Vec<&'a Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Expired,
    Released,
    Revoked,
}

#[derive(Debug, Clone)]
pub(super) struct Wait<'a> {
    pub(super) holder: &'a str,
    pub(super) wants: &'a [(String, Mode)],
    pub(super) from: u64,
    pub(super) to: u64,
}

#[derive(Debug, Default)]
pub(super) struct Lives<'a> {
    pub(super) leases: BTreeMap<u64, Lease<'a>>,
    pub(super) by_resource: HashMap<&'a str, Vec<u64>>,
    pub(super) waits: BTreeMap<u64, Wait<'a>>,
    /// Whether the moments are moments of the history.
    pub(super) has_times: bool,
    /// What a tick is on the history's clock, from each of these ticks on.
    offsets: BTreeMap<u64, i128>,
    pub(super) moments: Vec<Moment>,
}

impl Lease<'_> {
    pub(super) fn began(&self) -> Moment {
        self.terms[0].0
    }

    /// Its end as it stood last.
    pub(super) fn expires_at(&self) -> u64 {
        self.terms.last().expect("a lease begins with a term").1
    }

    /// When it was over, announced or not.
    pub(super) fn over_at(&self) -> u64 {
        match self.end {
            Some((moment, End::Released | End::Revoked)) => moment.at,
            _ => self.expires_at(),
        }
    }
}

impl<'a> Lives<'a> {
    pub(super) fn of(entries: &'a [Entry], clock: Option<&str>) -> Self {
        let mut lives = Lives::default();
        let mut clocks = entries.iter().filter_map(|entry| match &entry.event {
            Event::Clock { clock, .. } => Some(clock.as_str()),
            _ => None,
        });
        lives.has_times = clock.is_some() && clocks.all(|name| Some(name) == clock);
        for entry in entries {
            if let Event::Clock { microseconds, .. } = entry.event {
                lives.offsets.insert(entry.at, i128::from(microseconds) - i128::from(entry.at));
            }
        }
        entries.iter().for_each(|entry| lives.take(entry));
        lives
    }

    /// The moment of a tick. Without a common clock, ticks stay ticks.
    pub(super) fn moment_of(&self, tick: u64) -> u64 {
        let offset = if self.has_times {
            self.offsets.range(..=tick).next_back().or(self.offsets.first_key_value())
        } else {
            None
        };
        let moment = i128::from(tick) + offset.map_or(0, |(_, offset)| *offset);
        u64::try_from(moment).unwrap_or(0)
    }

    fn take(&mut self, entry: &'a Entry) {
        let moment = Moment { seq: entry.seq, at: self.moment_of(entry.at) };
        self.moments.push(moment);
        match &entry.event {
            Event::Issued { fence, id, resource, holder, mode, expires_at, ttl, ticket, continues } => {
                let terms = vec![(moment, self.moment_of_end(entry.at, *expires_at))];
                let (ttl, mode, ticket, continues) = (*ttl, *mode, *ticket, *continues);
                let lease = Lease {
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
                if let Some(wait) = ticket.and_then(|ticket| self.waits.get_mut(&ticket)) {
                    wait.to = wait.to.min(moment.at);
                }
            }
            Event::Renewed { fence, expires_at } => {
                let end = self.moment_of_end(entry.at, *expires_at);
                if let Some(lease) = self.leases.get_mut(fence) {
                    lease.terms.push((moment, end));
                    lease.entries.push(entry);
                }
            }
            Event::Released { fence } => self.end(entry, *fence, moment, End::Released),
            Event::Expired { fence } => self.end(entry, *fence, moment, End::Expired),
            Event::Revoked { fence, .. } => self.end(entry, *fence, moment, End::Revoked),
            Event::Queued { ticket, holder, wants, until } => {
                let to = self.moment_of_end(entry.at, *until);
                self.waits.insert(*ticket, Wait { holder, wants, from: moment.at, to });
            }
            Event::Left { ticket } => {
                if let Some(wait) = self.waits.get_mut(ticket) {
                    wait.to = wait.to.min(moment.at);
                }
            }
            Event::Clock { .. } => {}
        }
    }

    /// The moment of an end that was set at a tick: lengths are the same on both clocks.
    fn moment_of_end(&self, set_at: u64, tick: u64) -> u64 {
        self.moment_of(set_at).saturating_add(tick.saturating_sub(set_at))
    }

    fn end(&mut self, entry: &'a Entry, fence: u64, moment: Moment, end: End) {
        if let Some(lease) = self.leases.get_mut(&fence).filter(|lease| lease.end.is_none()) {
            lease.end = Some((moment, end));
            lease.entries.push(entry);
        }
    }

    /// The leases of a resource, in the order of their fences.
    pub(super) fn on<'b>(
        &'b self,
        resource: &str,
    ) -> impl Iterator<Item = (u64, &'b Lease<'a>)> + use<'a, 'b> {
        let fences = self.by_resource.get(resource).map_or(&[][..], Vec::as_slice);
        fences.iter().filter_map(|fence| Some((*fence, self.leases.get(fence)?)))
    }
}
