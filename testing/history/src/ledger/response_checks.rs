//! Each answer against the entries that must explain it.

use std::collections::{HashMap, HashSet};

use super::timeline::{LeaseEnd, LeaseTimeline, LedgerInstant, Timeline};
use crate::history::History;
use crate::law::{Law, Violation};
use crate::operation::{Action, Grant, LeaseMode, Operation, OperationResponse, RequestIdentity};

const MILLISECOND: u64 = 1_000;

/// Which entries the answers account for.
#[derive(Debug, Default)]
pub(super) struct MatchedEntries {
    pub(super) entries: HashSet<u64>,
    /// For each operation of the history, the last entry that it led to.
    pub(super) last: Vec<Option<u64>>,
}

struct ResponseChecker<'a> {
    timeline: &'a Timeline<'a>,
    /// When a request was first sent that was sent more than once.
    first_sent: HashMap<RequestIdentity<'a>, u64>,
    explained: MatchedEntries,
}

/// Compares every answer but those of readers.
pub(super) fn check(
    history: &History,
    timeline: &Timeline<'_>,
    violations: &mut Vec<Violation>,
) -> MatchedEntries {
    let mut first_sent = HashMap::new();
    for operation in &history.operations {
        if let Some(request) = operation.request_identity() {
            let first = first_sent.entry(request).or_insert(operation.invoked);
            *first = operation.invoked.min(*first);
        }
    }
    let mut checker = ResponseChecker { timeline, first_sent, explained: MatchedEntries::default() };
    for operation in &history.operations {
        let explained = checker.explain(operation);
        checker.explained.last.push(explained.as_ref().ok().copied().flatten());
        violations.extend(explained.err());
    }
    check_order(history, &checker.explained, violations);
    checker.explained
}

/// What was answered before something else was asked stands before it.
fn check_order(history: &History, claims: &MatchedEntries, violations: &mut Vec<Violation>) {
    let placed = history.operations.iter().zip(&claims.last);
    let mut by_request_time: Vec<(&Operation, u64)> =
        placed.filter_map(|(one, seq)| Some((one, (*seq)?))).collect();
    by_request_time.sort_by_key(|(operation, _)| operation.invoked);
    let mut answered = by_request_time.clone();
    answered.sort_by_key(|(operation, _)| operation.latest_effect_time());
    let mut answered = answered.into_iter().peekable();
    let mut highest: Option<(&Operation, u64)> = None;
    for (operation, seq) in by_request_time {
        while let Some(before) = answered.next_if(|(other, _)| other.latest_effect_time() < operation.invoked)
        {
            if highest.is_none_or(|(_, other)| other < before.1) {
                highest = Some(before);
            }
        }
        if let Some((before, other)) = highest.filter(|(_, other)| *other > seq) {
            let reason =
                format!("entry {seq} stands before entry {other}, and was asked for after that was answered");
            violations.push(
                Violation::new(Law::RealTimeOrder, reason).with_operation(before).with_operation(operation),
            );
        }
    }
}

type Explained = Result<Option<u64>, Violation>;

impl<'a> ResponseChecker<'a> {
    /// The entry that the answer rests on, if it has one of its own.
    fn explain(&mut self, operation: &'a Operation) -> Explained {
        let Some(answer) = &operation.answer else { return Ok(None) };
        match (&operation.action, answer) {
            (Action::Acquire { wants, holder, .. }, OperationResponse::Granted { leases }) => {
                let mut last = None;
                let mut began: Vec<LedgerInstant> = Vec::new();
                for (request, grant) in wants.iter().zip(leases) {
                    let requested = (request.resource.as_str(), holder.as_str(), request.mode);
                    let (moment, entry) = self.check_grant(operation, grant, requested, None)?;
                    began.push(moment);
                    last = last.max(entry);
                }
                if began.iter().any(|moment| moment.at != began[0].at) {
                    let reason = "its leases began at different moments";
                    return Err(Violation::new(Law::AllOrNothing, reason).with_operation(operation));
                }
                Ok(last)
            }
            (
                Action::Transfer { fence, resource, to: holder, mode },
                OperationResponse::Granted { leases },
            )
            | (Action::Change { fence, resource, holder, mode }, OperationResponse::Granted { leases }) => {
                let mut last = None;
                for grant in leases {
                    last = self.check_grant(operation, grant, (resource, holder, *mode), Some(*fence))?.1;
                }
                self.check_end(operation, *fence, LeaseEnd::Revoked)?;
                Ok(last)
            }
            (Action::Renew { fence, .. }, OperationResponse::Renewed { valid_for_ms }) => {
                self.check_renewal(operation, *fence, *valid_for_ms)
            }
            (Action::Release { fence, .. }, OperationResponse::Released) => {
                self.check_end(operation, *fence, LeaseEnd::Released)
            }
            (Action::Revoke { fence, .. }, OperationResponse::Released) => {
                self.check_end(operation, *fence, LeaseEnd::Revoked)
            }
            (
                Action::Renew { fence, .. }
                | Action::Release { fence, .. }
                | Action::Revoke { fence, .. }
                | Action::Transfer { fence, .. }
                | Action::Change { fence, .. },
                OperationResponse::Ended | OperationResponse::Unknown,
            ) => self.check_already_ended(operation, *fence).map(|()| None),
            (Action::Acquire { wants, .. }, OperationResponse::Held { resource, by }) => {
                let request = wants.iter().find(|request| request.resource == *resource);
                let mode = request.map_or(LeaseMode::Exclusive, |request| request.mode);
                self.check_denial(operation, resource, mode, by.as_deref(), None).map(|()| None)
            }
            (Action::Change { fence, mode, .. }, OperationResponse::Held { resource, by }) => {
                self.check_denial(operation, resource, *mode, by.as_deref(), Some(*fence)).map(|()| None)
            }
            _ => Ok(None),
        }
    }

    fn lease(&self, operation: &Operation, fence: u64) -> Result<&'a LeaseTimeline<'a>, Violation> {
        let missing = || {
            let reason = format!("there is no lease {fence} in the ledger");
            Violation::new(Law::Durability, reason).with_operation(operation)
        };
        self.timeline.leases.get(&fence).ok_or_else(missing)
    }

    fn check_grant(
        &mut self,
        operation: &'a Operation,
        grant: &Grant,
        (resource, holder, mode): (&str, &str, LeaseMode),
        continues: Option<u64>,
    ) -> Result<(LedgerInstant, Option<u64>), Violation> {
        let life = self.lease(operation, grant.fence)?;
        // It is this one's, right or wrong.
        let own = self.account_for(life.started());
        let differs = |what: &str| lease_violation(Law::AnswersMatchLedger, what, operation, life);
        if (life.resource, life.holder, life.mode) != (resource, holder, mode) {
            return Err(differs("the ledger has another resource, holder or mode"));
        }
        if grant.id.as_deref().is_some_and(|id| id != life.id) || life.continues != continues {
            return Err(differs("the ledger has another id, or it continues another lease"));
        }
        if grant.ttl_ms * MILLISECOND != life.ttl && life.terms.len() == 1 {
            return Err(differs("the ledger has another length"));
        }
        if life.ticket.is_some() && matches!(operation.action, Action::Acquire { wait_ms: 0, .. }) {
            return Err(differs("the ledger says that it waited"));
        }
        let began = life.started();
        if !self.timeline.has_times {
            return Ok((began, own));
        }
        let promised = |end: u64| is_promised_expiry(operation, grant.valid_for_ms, end);
        if !life.terms.iter().any(|(_, end)| promised(*end)) {
            return Err(differs("the ledger has another end"));
        }
        let sent = operation.request_identity().and_then(|request| self.first_sent.get(&request).copied());
        let sent = sent.unwrap_or(operation.invoked);
        if began.at > operation.latest_effect_time() {
            return Err(lease_violation(
                Law::Durability,
                "it was answered before it happened",
                operation,
                life,
            ));
        }
        if began.at < sent {
            return Err(lease_violation(
                Law::NoUnrequestedEvents,
                "it happened before it was asked for",
                operation,
                life,
            ));
        }
        // A repeat tells of what happened before.
        Ok((began, own.filter(|_| began.at >= operation.invoked)))
    }

    fn check_renewal(&mut self, operation: &'a Operation, fence: u64, valid_for_ms: u64) -> Explained {
        let life = self.lease(operation, fence)?;
        let renewals = &life.terms[1..];
        if !self.timeline.has_times {
            self.explained.entries.extend(renewals.iter().map(|(moment, _)| moment.seq));
            return Ok(None);
        }
        let promised = |end: u64| is_promised_expiry(operation, valid_for_ms, end);
        let within = |at: u64| (operation.invoked..=operation.latest_effect_time()).contains(&at);
        let own = renewals.iter().find(|(moment, end)| {
            within(moment.at) && promised(*end) && !self.explained.entries.contains(&moment.seq)
        });
        if let Some((moment, _)) = own {
            return Ok(self.account_for(*moment));
        }
        // It had as much time already: then nothing was written.
        let in_force =
            life.terms.iter().zip(life.terms.iter().skip(1).map(|(next, _)| next.at).chain([u64::MAX]));
        let had = in_force.into_iter().any(|((moment, end), until)| {
            promised(*end) && moment.at <= operation.latest_effect_time() && operation.invoked <= until
        });
        if had && life.ended_at() > operation.invoked {
            return Ok(None);
        }
        Err(lease_violation(Law::Durability, "there is no such renewal in the ledger", operation, life))
    }

    fn check_end(&mut self, operation: &'a Operation, fence: u64, how: LeaseEnd) -> Explained {
        let life = self.lease(operation, fence)?;
        let Some((moment, end)) = life.end.filter(|(_, end)| *end != LeaseEnd::Expired) else {
            return Err(lease_violation(Law::Durability, "the ledger has no such end", operation, life));
        };
        if !self.timeline.has_times {
            return Ok(self.account_for(moment));
        }
        if moment.at > operation.latest_effect_time() {
            return Err(lease_violation(
                Law::Durability,
                "it was answered before it happened",
                operation,
                life,
            ));
        }
        let is_own = end == how && moment.at >= operation.invoked;
        Ok(if is_own { self.account_for(moment) } else { None })
    }

    fn check_already_ended(&self, operation: &Operation, fence: u64) -> Result<(), Violation> {
        let life = self.lease(operation, fence)?;
        if self.timeline.has_times && life.ended_at() > operation.latest_effect_time() {
            return Err(lease_violation(Law::NoEarlyEnd, "it was alive all the time", operation, life));
        }
        Ok(())
    }

    /// Somebody must have been in the way at one moment between question and answer.
    fn check_denial(
        &self,
        operation: &Operation,
        resource: &str,
        mode: LeaseMode,
        by: Option<&str>,
        own: Option<u64>,
    ) -> Result<(), Violation> {
        if !self.timeline.has_times {
            return Ok(());
        }
        let (from, to) = (operation.invoked, operation.latest_effect_time());
        let named = |holder: &str| by.is_none_or(|by| by == holder);
        let holds = |(fence, life): (u64, &LeaseTimeline<'_>)| {
            let meets = life.started().at <= to && from < life.ended_at();
            meets && !life.mode.is_compatible(mode) && named(life.holder) && own != Some(fence)
        };
        let is_blocked_by_wait = |wait: &super::timeline::WaitInterval<'_>| {
            let conflicts = wait
                .requests
                .iter()
                .any(|(name, requested)| name == resource && !requested.is_compatible(mode));
            conflicts && named(wait.holder) && wait.from <= to && from <= wait.to
        };
        if self.timeline.leases_on(resource).any(holds)
            || self.timeline.wait_intervals.values().any(is_blocked_by_wait)
        {
            return Ok(());
        }
        let reason = "by the ledger, that one held nothing that was in the way in this time";
        let mut violation = Violation::new(Law::JustifiedDenials, reason).with_operation(operation);
        for (_, life) in self
            .timeline
            .leases_on(resource)
            .filter(|(_, life)| life.started().at <= to && from < life.ended_at())
        {
            violation = life.entries.iter().fold(violation, |violation, entry| violation.with_line(entry));
        }
        Err(violation)
    }

    fn account_for(&mut self, moment: LedgerInstant) -> Option<u64> {
        self.explained.entries.insert(moment.seq);
        Some(moment.seq)
    }
}

/// Whether an end is the one that was promised: so long from a moment between question and answer.
pub(super) fn is_promised_expiry(operation: &Operation, valid_for_ms: u64, end: u64) -> bool {
    let valid = valid_for_ms * MILLISECOND;
    let latest = operation.latest_effect_time().saturating_add(valid + MILLISECOND - 1);
    (operation.invoked + valid..=latest).contains(&end)
}

pub(super) fn lease_violation(
    law: Law,
    what: &str,
    operation: &Operation,
    life: &LeaseTimeline<'_>,
) -> Violation {
    let violation = Violation::new(law, what).with_operation(operation);
    life.entries.iter().fold(violation, |violation, entry| violation.with_line(entry))
}
