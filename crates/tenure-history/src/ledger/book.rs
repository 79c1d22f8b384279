//! What the ledger must not say, whatever anybody was told.

use std::collections::BTreeMap;

use super::entry::{Entry, Event};
use crate::law::{Law, Violation};
use crate::operation::Mode;

/// A lease that was not ended.
struct Lease<'a> {
    issued: &'a Entry,
    resource: &'a str,
    mode: Mode,
    expires_at: u64,
}

/// A waiter that was neither let in nor sent away.
struct Waiter<'a> {
    queued: &'a Entry,
    wants: &'a [(String, Mode)],
    until: u64,
}

#[derive(Default)]
struct Book<'a> {
    leases: BTreeMap<u64, Lease<'a>>,
    waiters: BTreeMap<u64, Waiter<'a>>,
    last: Option<&'a Entry>,
    last_fence: u64,
    /// How what was ended last was held: another lease may go on in its place.
    last_ended: Option<(u64, Mode)>,
    violations: Vec<Violation>,
}

/// Reads the entries from the first to the last.
pub(super) fn check(entries: &[Entry]) -> Vec<Violation> {
    let mut book = Book::default();
    let mut rest = entries;
    while let Some((entry, after)) = rest.split_first() {
        book.take(entry, after);
        rest = after;
    }
    book.violations
}

impl<'a> Book<'a> {
    fn take(&mut self, entry: &'a Entry, after: &'a [Entry]) {
        if let Some(last) = self.last.filter(|last| last.at > entry.at) {
            self.report(Law::TimeGrows, format!("{} comes after {}", entry.at, last.at), &[last, entry]);
        }
        self.last = Some(entry);
        match &entry.event {
            Event::Issued { .. } => self.issue(entry, after),
            Event::Renewed { fence, expires_at } => {
                self.act(entry, *fence);
                let Some(lease) = self.leases.get_mut(fence) else { return };
                let before = std::mem::replace(&mut lease.expires_at, *expires_at);
                if before > *expires_at {
                    let issued = lease.issued;
                    let reason = format!("{fence} had until {before}, and has until {expires_at} now");
                    self.report(Law::NeverShorter, reason, &[issued, entry]);
                }
            }
            Event::Released { fence } | Event::Revoked { fence, .. } => {
                self.act(entry, *fence);
                self.last_ended = self.leases.remove(fence).map(|lease| (*fence, lease.mode));
            }
            Event::Expired { fence } => match self.leases.remove(fence) {
                Some(lease) if entry.at < lease.expires_at => {
                    let reason =
                        format!("{fence} had until {}, and was ended at {}", lease.expires_at, entry.at);
                    self.report(Law::NeverEarly, reason, &[lease.issued, entry]);
                }
                Some(_) => {}
                None => self.report(Law::StrictEnd, format!("{fence} did not live"), &[entry]),
            },
            Event::Queued { ticket, wants, until, .. } => {
                self.waiters.insert(*ticket, Waiter { queued: entry, wants, until: *until });
            }
            Event::Left { ticket } => drop(self.waiters.remove(ticket)),
            Event::Clock { .. } => {}
        }
    }

    fn issue(&mut self, entry: &'a Entry, after: &'a [Entry]) {
        let Event::Issued { fence, resource, mode, expires_at, ttl, ticket, continues, .. } = &entry.event
        else {
            return;
        };
        if *fence <= self.last_fence {
            let law = if self.leases.contains_key(fence) { Law::FenceOnce } else { Law::FenceGrows };
            self.report(law, format!("{fence} comes after {}", self.last_fence), &[entry]);
        }
        self.last_fence = self.last_fence.max(*fence);
        if entry.at + ttl != *expires_at {
            let reason = format!("{fence} has a length of {ttl}, but ends {} later", expires_at - entry.at);
            self.report(Law::NeverShorter, reason, &[entry]);
        }
        let rivals: Vec<_> = self.leases.values().filter(|lease| lease.resource == resource).collect();
        let rivals =
            rivals.into_iter().filter(|lease| !lease.mode.goes_with(*mode) && lease.expires_at > entry.at);
        for (rival, until) in rivals.map(|lease| (lease.issued, lease.expires_at)).collect::<Vec<_>>() {
            let reason = format!("{resource} was not free until {until}");
            self.report(Law::OneHolder, reason, &[rival, entry]);
        }
        // Who goes on overtakes those alone whom its lease did not keep out before.
        let before = self.last_ended.filter(|(ended, _)| Some(*ended) == *continues).map(|(_, mode)| mode);
        self.check_turn(entry, resource, (*mode, before), *ticket);
        if let Some(ticket) = ticket {
            self.serve(entry, after, *ticket);
        }
        self.leases.insert(*fence, Lease { issued: entry, resource, mode: *mode, expires_at: *expires_at });
    }

    /// Nobody who came earlier, and still waits, may be in conflict with this one.
    fn check_turn(
        &mut self,
        entry: &'a Entry,
        resource: &str,
        (mode, before): (Mode, Option<Mode>),
        ticket: Option<u64>,
    ) {
        let earlier = self.waiters.iter().filter(|(other, _)| ticket.is_none_or(|own| **other < own));
        let overtaken = earlier.filter(|(_, waiter)| waiter.until > entry.at).find(|(_, waiter)| {
            let is_kept_out = |wanted: &Mode| {
                !wanted.goes_with(mode) && before.is_none_or(|before| wanted.goes_with(before))
            };
            waiter.wants.iter().any(|(name, wanted)| name == resource && is_kept_out(wanted))
        });
        if let Some((other, waiter)) = overtaken {
            let (reason, queued) = (format!("ticket {other} came first"), waiter.queued);
            self.report(Law::FirstComeFirstServed, reason, &[queued, entry]);
        }
    }

    /// A waiter gets all that it waits for, in one go, while it waits. The first of its leases serves it.
    fn serve(&mut self, entry: &'a Entry, after: &'a [Entry], ticket: u64) {
        let Some(waiter) = self.waiters.remove(&ticket) else { return };
        if waiter.until <= entry.at {
            let reason = format!("ticket {ticket} waited until {}", waiter.until);
            self.report(Law::PatienceEnds, reason, &[waiter.queued, entry]);
        }
        let is_its = |other: &&Entry| {
            matches!(&other.event, Event::Issued { ticket: Some(own), .. } if *own == ticket)
                && other.at == entry.at
        };
        let expiries = |other: &&Entry| matches!(other.event, Event::Expired { .. });
        let together =
            after.iter().take_while(|other| is_its(other) || expiries(other)).filter(is_its).count();
        if together + 1 != waiter.wants.len() {
            let reason = format!("ticket {ticket} got {} of {}", together + 1, waiter.wants.len());
            self.report(Law::AllOrNothing, reason, &[waiter.queued, entry]);
        }
    }

    /// Whoever acts on a lease needs one that lives.
    fn act(&mut self, entry: &'a Entry, fence: u64) {
        match self.leases.get(&fence) {
            Some(lease) if entry.at < lease.expires_at => {}
            Some(lease) => {
                let (reason, issued) = (format!("{fence} had until {}", lease.expires_at), lease.issued);
                self.report(Law::StrictEnd, reason, &[issued, entry]);
            }
            None => self.report(Law::StrictEnd, format!("{fence} did not live"), &[entry]),
        }
    }

    fn report(&mut self, law: Law, reason: String, entries: &[&Entry]) {
        let violation = Violation::new(law, reason);
        self.violations.push(entries.iter().fold(violation, |violation, entry| violation.and(entry)));
    }
}
