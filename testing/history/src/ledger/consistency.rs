//! What a ledger must never contain, whatever clients were told.

use std::collections::BTreeMap;

use super::entry::{LedgerEntry, LedgerEvent};
use crate::law::{Law, Violation};
use crate::operation::LeaseMode;

/// A lease that was not ended.
struct OpenLease<'a> {
    issued: &'a LedgerEntry,
    resource: &'a str,
    mode: LeaseMode,
    expires_at: u64,
}

/// A waiter that was neither let in nor sent away.
struct OpenWait<'a> {
    queued: &'a LedgerEntry,
    requests: &'a [(String, LeaseMode)],
    until: u64,
}

#[derive(Default)]
struct ConsistencyChecker<'a> {
    leases: BTreeMap<u64, OpenLease<'a>>,
    waiters: BTreeMap<u64, OpenWait<'a>>,
    last: Option<&'a LedgerEntry>,
    last_fence: u64,
    /// How what was ended last was held: another lease may go on in its place.
    last_ended: Option<(u64, LeaseMode)>,
    violations: Vec<Violation>,
}

/// Reads the entries from the first to the last.
pub(super) fn check(entries: &[LedgerEntry]) -> Vec<Violation> {
    let mut checker = ConsistencyChecker::default();
    let mut rest = entries;
    while let Some((entry, after)) = rest.split_first() {
        checker.apply(entry, after);
        rest = after;
    }
    checker.violations
}

impl<'a> ConsistencyChecker<'a> {
    fn apply(&mut self, entry: &'a LedgerEntry, after: &'a [LedgerEntry]) {
        if let Some(last) = self.last.filter(|last| last.at > entry.at) {
            self.report(Law::MonotonicTime, format!("{} comes after {}", entry.at, last.at), &[last, entry]);
        }
        self.last = Some(entry);
        match &entry.event {
            LedgerEvent::Issued { .. } => self.issue(entry, after),
            LedgerEvent::Renewed { fence, expires_at } => {
                self.check_active(entry, *fence);
                let Some(lease) = self.leases.get_mut(fence) else { return };
                let before = std::mem::replace(&mut lease.expires_at, *expires_at);
                if before > *expires_at {
                    let issued = lease.issued;
                    let reason = format!("{fence} had until {before}, and has until {expires_at} now");
                    self.report(Law::NoShortening, reason, &[issued, entry]);
                }
            }
            LedgerEvent::Released { fence } | LedgerEvent::Revoked { fence, .. } => {
                self.check_active(entry, *fence);
                self.last_ended = self.leases.remove(fence).map(|lease| (*fence, lease.mode));
            }
            LedgerEvent::Expired { fence } => match self.leases.remove(fence) {
                Some(lease) if entry.at < lease.expires_at => {
                    let reason =
                        format!("{fence} had until {}, and was ended at {}", lease.expires_at, entry.at);
                    self.report(Law::NoEarlyEnd, reason, &[lease.issued, entry]);
                }
                Some(_) => {}
                None => self.report(Law::NoUseAfterEnd, format!("{fence} did not live"), &[entry]),
            },
            LedgerEvent::Queued { ticket, requests: wants, until, .. } => {
                self.waiters.insert(*ticket, OpenWait { queued: entry, requests: wants, until: *until });
            }
            LedgerEvent::WaitEnded { ticket } => drop(self.waiters.remove(ticket)),
            LedgerEvent::Clock { .. } => {}
        }
    }

    fn issue(&mut self, entry: &'a LedgerEntry, after: &'a [LedgerEntry]) {
        let LedgerEvent::Issued { fence, resource, mode, expires_at, ttl, ticket, continues, .. } =
            &entry.event
        else {
            return;
        };
        if *fence <= self.last_fence {
            let law = if self.leases.contains_key(fence) { Law::UniqueFences } else { Law::MonotonicFences };
            self.report(law, format!("{fence} comes after {}", self.last_fence), &[entry]);
        }
        self.last_fence = self.last_fence.max(*fence);
        if entry.at + ttl != *expires_at {
            let reason = format!("{fence} has a length of {ttl}, but ends {} later", expires_at - entry.at);
            self.report(Law::NoShortening, reason, &[entry]);
        }
        let rivals: Vec<_> = self.leases.values().filter(|lease| lease.resource == resource).collect();
        let rivals = rivals
            .into_iter()
            .filter(|lease| !lease.mode.is_compatible(*mode) && lease.expires_at > entry.at);
        for (rival, until) in rivals.map(|lease| (lease.issued, lease.expires_at)).collect::<Vec<_>>() {
            let reason = format!("{resource} was not free until {until}");
            self.report(Law::MutualExclusion, reason, &[rival, entry]);
        }
        // Who goes on overtakes those alone whom its lease did not keep out before.
        let before = self.last_ended.filter(|(ended, _)| Some(*ended) == *continues).map(|(_, mode)| mode);
        self.check_fifo(entry, resource, (*mode, before), *ticket);
        if let Some(ticket) = ticket {
            self.check_served(entry, after, *ticket);
        }
        self.leases
            .insert(*fence, OpenLease { issued: entry, resource, mode: *mode, expires_at: *expires_at });
    }

    /// Nobody who came earlier, and still waits, may be in conflict with this one.
    fn check_fifo(
        &mut self,
        entry: &'a LedgerEntry,
        resource: &str,
        (mode, before): (LeaseMode, Option<LeaseMode>),
        ticket: Option<u64>,
    ) {
        let earlier = self.waiters.iter().filter(|(other, _)| ticket.is_none_or(|own| **other < own));
        let overtaken = earlier.filter(|(_, waiter)| waiter.until > entry.at).find(|(_, waiter)| {
            let is_blocked = |waiting: &LeaseMode| {
                !waiting.is_compatible(mode) && before.is_none_or(|before| waiting.is_compatible(before))
            };
            waiter.requests.iter().any(|(name, requested)| name == resource && is_blocked(requested))
        });
        if let Some((other, waiter)) = overtaken {
            let (reason, queued) = (format!("ticket {other} came first"), waiter.queued);
            self.report(Law::FirstComeFirstServed, reason, &[queued, entry]);
        }
    }

    /// A waiter gets all that it waits for, in one go, while it waits. The first of its leases serves it.
    fn check_served(&mut self, entry: &'a LedgerEntry, after: &'a [LedgerEntry], ticket: u64) {
        let Some(waiter) = self.waiters.remove(&ticket) else { return };
        if waiter.until <= entry.at {
            let reason = format!("ticket {ticket} waited until {}", waiter.until);
            self.report(Law::NoGrantAfterTimeout, reason, &[waiter.queued, entry]);
        }
        let is_its = |other: &&LedgerEntry| {
            matches!(&other.event, LedgerEvent::Issued { ticket: Some(own), .. } if *own == ticket)
                && other.at == entry.at
        };
        let expiries = |other: &&LedgerEntry| matches!(other.event, LedgerEvent::Expired { .. });
        let together =
            after.iter().take_while(|other| is_its(other) || expiries(other)).filter(is_its).count();
        if together + 1 != waiter.requests.len() {
            let reason = format!("ticket {ticket} got {} of {}", together + 1, waiter.requests.len());
            self.report(Law::AllOrNothing, reason, &[waiter.queued, entry]);
        }
    }

    /// Whoever acts on a lease needs one that lives.
    fn check_active(&mut self, entry: &'a LedgerEntry, fence: u64) {
        match self.leases.get(&fence) {
            Some(lease) if entry.at < lease.expires_at => {}
            Some(lease) => {
                let (reason, issued) = (format!("{fence} had until {}", lease.expires_at), lease.issued);
                self.report(Law::NoUseAfterEnd, reason, &[issued, entry]);
            }
            None => self.report(Law::NoUseAfterEnd, format!("{fence} did not live"), &[entry]),
        }
    }

    fn report(&mut self, law: Law, reason: String, entries: &[&LedgerEntry]) {
        let violation = Violation::new(law, reason);
        self.violations.push(entries.iter().fold(violation, |violation, entry| violation.with_line(entry)));
    }
}
