//! Each answer against the entries that must explain it.

use std::collections::{HashMap, HashSet};

use super::lives::{End, Lease, Lives, Moment};
use crate::history::History;
use crate::law::{Law, Violation};
use crate::operation::{Action, Answer, Grant, Mode, Operation, Request};

const MILLISECOND: u64 = 1_000;

/// Which entries the answers account for.
#[derive(Debug, Default)]
pub(super) struct Claims {
    pub(super) entries: HashSet<u64>,
    /// For each operation of the history, the last entry that it led to.
    pub(super) last: Vec<Option<u64>>,
}

struct Checker<'a> {
    lives: &'a Lives<'a>,
    /// When a request was first sent that was sent more than once.
    first_sent: HashMap<Request<'a>, u64>,
    claims: Claims,
}

/// Compares every answer but those of readers.
pub(super) fn check(history: &History, lives: &Lives<'_>, violations: &mut Vec<Violation>) -> Claims {
    let mut first_sent = HashMap::new();
    for operation in &history.operations {
        if let Some(request) = operation.request() {
            let first = first_sent.entry(request).or_insert(operation.invoked);
            *first = operation.invoked.min(*first);
        }
    }
    let mut checker = Checker { lives, first_sent, claims: Claims::default() };
    for operation in &history.operations {
        let explained = checker.explain(operation);
        checker.claims.last.push(explained.as_ref().ok().copied().flatten());
        violations.extend(explained.err());
    }
    order(history, &checker.claims, violations);
    checker.claims
}

/// What was answered before something else was asked stands before it.
fn order(history: &History, claims: &Claims, violations: &mut Vec<Violation>) {
    let placed = history.operations.iter().zip(&claims.last);
    let mut asked: Vec<(&Operation, u64)> = placed.filter_map(|(one, seq)| Some((one, (*seq)?))).collect();
    asked.sort_by_key(|(operation, _)| operation.invoked);
    let mut answered = asked.clone();
    answered.sort_by_key(|(operation, _)| operation.latest());
    let mut answered = answered.into_iter().peekable();
    let mut highest: Option<(&Operation, u64)> = None;
    for (operation, seq) in asked {
        while let Some(before) = answered.next_if(|(other, _)| other.latest() < operation.invoked) {
            if highest.is_none_or(|(_, other)| other < before.1) {
                highest = Some(before);
            }
        }
        if let Some((before, other)) = highest.filter(|(_, other)| *other > seq) {
            let reason =
                format!("entry {seq} stands before entry {other}, and was asked for after that was answered");
            violations.push(Violation::new(Law::RealTimeOrder, reason).with(before).with(operation));
        }
    }
}

type Explained = Result<Option<u64>, Violation>;

impl<'a> Checker<'a> {
    /// The entry that the answer rests on, if it has one of its own.
    fn explain(&mut self, operation: &'a Operation) -> Explained {
        let Some(answer) = &operation.answer else { return Ok(None) };
        match (&operation.action, answer) {
            (Action::Acquire { wants, holder, .. }, Answer::Granted { leases }) => {
                let mut last = None;
                let mut began: Vec<Moment> = Vec::new();
                for (want, grant) in wants.iter().zip(leases) {
                    let wanted = (want.resource.as_str(), holder.as_str(), want.mode);
                    let (moment, entry) = self.granted(operation, grant, wanted, None)?;
                    began.push(moment);
                    last = last.max(entry);
                }
                if began.iter().any(|moment| moment.at != began[0].at) {
                    let reason = "its leases began at different moments";
                    return Err(Violation::new(Law::AllOrNothing, reason).with(operation));
                }
                Ok(last)
            }
            (Action::Transfer { fence, resource, to: holder, mode }, Answer::Granted { leases })
            | (Action::Change { fence, resource, holder, mode }, Answer::Granted { leases }) => {
                let mut last = None;
                for grant in leases {
                    last = self.granted(operation, grant, (resource, holder, *mode), Some(*fence))?.1;
                }
                self.ended(operation, *fence, End::Revoked)?;
                Ok(last)
            }
            (Action::Renew { fence, .. }, Answer::Renewed { valid_for_ms }) => {
                self.renewed(operation, *fence, *valid_for_ms)
            }
            (Action::Release { fence, .. }, Answer::Released) => self.ended(operation, *fence, End::Released),
            (Action::Revoke { fence, .. }, Answer::Released) => self.ended(operation, *fence, End::Revoked),
            (
                Action::Renew { fence, .. }
                | Action::Release { fence, .. }
                | Action::Revoke { fence, .. }
                | Action::Transfer { fence, .. }
                | Action::Change { fence, .. },
                Answer::Over | Answer::Unknown,
            ) => self.over(operation, *fence).map(|()| None),
            (Action::Acquire { wants, .. }, Answer::Held { resource, by }) => {
                let want = wants.iter().find(|want| want.resource == *resource);
                let mode = want.map_or(Mode::Exclusive, |want| want.mode);
                self.held(operation, resource, mode, by.as_deref(), None).map(|()| None)
            }
            (Action::Change { fence, mode, .. }, Answer::Held { resource, by }) => {
                self.held(operation, resource, *mode, by.as_deref(), Some(*fence)).map(|()| None)
            }
            _ => Ok(None),
        }
    }

    fn life(&self, operation: &Operation, fence: u64) -> Result<&'a Lease<'a>, Violation> {
        let missing = || {
            let reason = format!("there is no lease {fence} in the ledger");
            Violation::new(Law::AcknowledgedIsDurable, reason).with(operation)
        };
        self.lives.leases.get(&fence).ok_or_else(missing)
    }

    fn granted(
        &mut self,
        operation: &'a Operation,
        grant: &Grant,
        (resource, holder, mode): (&str, &str, Mode),
        continues: Option<u64>,
    ) -> Result<(Moment, Option<u64>), Violation> {
        let life = self.life(operation, grant.fence)?;
        // It is this one's, right or wrong.
        let own = self.claim(life.began());
        let differs = |what: &str| told(Law::AnswersAreTrue, what, operation, life);
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
        let began = life.began();
        if !self.lives.has_times {
            return Ok((began, own));
        }
        let promised = |end: u64| ends_within(operation, grant.valid_for_ms, end);
        if !life.terms.iter().any(|(_, end)| promised(*end)) {
            return Err(differs("the ledger has another end"));
        }
        let sent = operation.request().and_then(|request| self.first_sent.get(&request).copied());
        let sent = sent.unwrap_or(operation.invoked);
        if began.at > operation.latest() {
            return Err(told(
                Law::AcknowledgedIsDurable,
                "it was answered before it happened",
                operation,
                life,
            ));
        }
        if began.at < sent {
            return Err(told(Law::NothingUnasked, "it happened before it was asked for", operation, life));
        }
        // A repeat tells of what happened before.
        Ok((began, own.filter(|_| began.at >= operation.invoked)))
    }

    fn renewed(&mut self, operation: &'a Operation, fence: u64, valid_for_ms: u64) -> Explained {
        let life = self.life(operation, fence)?;
        let renewals = &life.terms[1..];
        if !self.lives.has_times {
            self.claims.entries.extend(renewals.iter().map(|(moment, _)| moment.seq));
            return Ok(None);
        }
        let promised = |end: u64| ends_within(operation, valid_for_ms, end);
        let within = |at: u64| (operation.invoked..=operation.latest()).contains(&at);
        let own = renewals.iter().find(|(moment, end)| {
            within(moment.at) && promised(*end) && !self.claims.entries.contains(&moment.seq)
        });
        if let Some((moment, _)) = own {
            return Ok(self.claim(*moment));
        }
        // It had as much time already: then nothing was written.
        let in_force =
            life.terms.iter().zip(life.terms.iter().skip(1).map(|(next, _)| next.at).chain([u64::MAX]));
        let had = in_force.into_iter().any(|((moment, end), until)| {
            promised(*end) && moment.at <= operation.latest() && operation.invoked <= until
        });
        if had && life.over_at() > operation.invoked {
            return Ok(None);
        }
        Err(told(Law::AcknowledgedIsDurable, "there is no such renewal in the ledger", operation, life))
    }

    fn ended(&mut self, operation: &'a Operation, fence: u64, how: End) -> Explained {
        let life = self.life(operation, fence)?;
        let Some((moment, end)) = life.end.filter(|(_, end)| *end != End::Expired) else {
            return Err(told(Law::AcknowledgedIsDurable, "the ledger has no such end", operation, life));
        };
        if !self.lives.has_times {
            return Ok(self.claim(moment));
        }
        if moment.at > operation.latest() {
            return Err(told(
                Law::AcknowledgedIsDurable,
                "it was answered before it happened",
                operation,
                life,
            ));
        }
        let is_own = end == how && moment.at >= operation.invoked;
        Ok(if is_own { self.claim(moment) } else { None })
    }

    fn over(&self, operation: &Operation, fence: u64) -> Result<(), Violation> {
        let life = self.life(operation, fence)?;
        if self.lives.has_times && life.over_at() > operation.latest() {
            return Err(told(Law::NeverEarly, "it was alive all the time", operation, life));
        }
        Ok(())
    }

    /// Somebody must have been in the way at one moment between question and answer.
    fn held(
        &self,
        operation: &Operation,
        resource: &str,
        mode: Mode,
        by: Option<&str>,
        own: Option<u64>,
    ) -> Result<(), Violation> {
        if !self.lives.has_times {
            return Ok(());
        }
        let (from, to) = (operation.invoked, operation.latest());
        let named = |holder: &str| by.is_none_or(|by| by == holder);
        let holds = |(fence, life): (u64, &Lease<'_>)| {
            let meets = life.began().at <= to && from < life.over_at();
            meets && !life.mode.goes_with(mode) && named(life.holder) && own != Some(fence)
        };
        let waits = |wait: &super::lives::Wait<'_>| {
            let wants = wait.wants.iter().any(|(name, wanted)| name == resource && !wanted.goes_with(mode));
            wants && named(wait.holder) && wait.from <= to && from <= wait.to
        };
        if self.lives.on(resource).any(holds) || self.lives.waits.values().any(waits) {
            return Ok(());
        }
        let reason = "by the ledger, that one held nothing that was in the way in this time";
        let mut violation = Violation::new(Law::HeldBySomebody, reason).with(operation);
        for (_, life) in
            self.lives.on(resource).filter(|(_, life)| life.began().at <= to && from < life.over_at())
        {
            violation = life.entries.iter().fold(violation, |violation, entry| violation.and(entry));
        }
        Err(violation)
    }

    fn claim(&mut self, moment: Moment) -> Option<u64> {
        self.claims.entries.insert(moment.seq);
        Some(moment.seq)
    }
}

/// Whether an end is the one that was promised: so long from a moment between question and answer.
pub(super) fn ends_within(operation: &Operation, valid_for_ms: u64, end: u64) -> bool {
    let valid = valid_for_ms * MILLISECOND;
    let latest = operation.latest().saturating_add(valid + MILLISECOND - 1);
    (operation.invoked + valid..=latest).contains(&end)
}

pub(super) fn told(law: Law, what: &str, operation: &Operation, life: &Lease<'_>) -> Violation {
    let violation = Violation::new(law, what).with(operation);
    life.entries.iter().fold(violation, |violation, entry| violation.and(entry))
}
