//! Laws on what clients are answered.

use tenure_core::authority::Budget;
use tenure_core::kernel::{
    ClaimWork, Command, CommandOutcome, Fence, IdempotencyKey, Rejection, SpendBudget, Tick, TickDuration,
    WorkCommand,
};

use super::{Amounts, InvariantResult, ScopeModel, WORK_IDS, WorkLaw, WorkModel, minus, subject_of};

impl WorkModel {
    /// Records a request before the server has it. Only recorded requests may change a lease.
    pub fn record_request(&mut self, command: &Command) {
        let requests = self.requests.entry(subject_of(command)).or_default();
        if !requests.contains(command) {
            requests.push(command.clone());
        }
    }

    /// Judges an answer, once everything that it rests on is durable. `stamp` is when the server received the request.
    pub fn check_answer(
        &mut self,
        command: &Command,
        answer: &CommandOutcome,
        stamp: Tick,
    ) -> InvariantResult {
        match answer {
            CommandOutcome::Rejected(rejection) => self.check_rejection(command, rejection, stamp),
            _ => {
                let is_authorized = self.is_authorized(command);
                WorkLaw::HolderOnly
                    .ensure(is_authorized, || format!("{command:?} is answered {answer:?}"))?;
                self.check_acknowledgement(command, answer, stamp)
            }
        }
    }

    fn check_acknowledgement(
        &mut self,
        command: &Command,
        answer: &CommandOutcome,
        stamp: Tick,
    ) -> InvariantResult {
        let Command::Work(work) = command else { return Ok(()) };
        match (&**work, answer) {
            (WorkCommand::Claim(claim), CommandOutcome::Granted { leases }) => {
                self.check_granted(claim, None, leases)
            }
            (WorkCommand::Derive(derive), CommandOutcome::Granted { leases }) => {
                self.check_granted(&derive.child, Some(derive.parent), leases)
            }
            (WorkCommand::Spend(spend), CommandOutcome::Spent { lease, remaining })
                if *lease == spend.lease =>
            {
                self.check_spent(spend, remaining.amounts(), stamp)
            }
            _ => {
                WorkLaw::AcknowledgedIsDurable.ensure(false, || format!("{command:?} is answered {answer:?}"))
            }
        }
    }

    fn check_granted(&self, claim: &ClaimWork, parent: Option<Fence>, leases: &[Fence]) -> InvariantResult {
        let lease = leases.first().and_then(|fence| self.leases.get(fence));
        let is_requested = lease.is_some_and(|lease| {
            lease.parent == parent
                && *lease.work_id == *claim.work_id
                && lease.holder == claim.holder
                && lease.scope == ScopeModel::new(&claim.scope)
                && lease.budget == claim.budget.amounts()
                && lease.key == claim.key
        });
        WorkLaw::AcknowledgedIsDurable.ensure(is_requested && leases.len() == 1, || {
            format!("{claim:?} is granted {leases:?}: {lease:?}")
        })
    }

    fn check_spent(&mut self, spend: &SpendBudget, remaining: Amounts, stamp: Tick) -> InvariantResult {
        let lease = self.lease_mut(spend.lease)?;
        let inexact = |expected: &dyn std::fmt::Debug| {
            format!("{spend:?} is answered {remaining:?}, expected {expected:?}")
        };
        if spend.amount == Budget::ZERO {
            let is_allowed = lease.scope.allows_purpose(&spend.purpose);
            WorkLaw::SpendWithinLease.ensure(is_allowed, || format!("{spend:?} is answered as allowed"))?;
            let is_exact = lease.remaining.during(stamp).any(|amounts| *amounts == remaining);
            return WorkLaw::ExactRemaining.ensure(is_exact, || inexact(&lease.remaining));
        }
        // A repeated request with a key is acknowledged again. One without is another spend.
        let found = lease.spends.iter_mut().find(|found| {
            found.key == spend.key
                && (found.amount, &found.purpose) == (spend.amount.amounts(), &spend.purpose)
                && (found.key.is_some() || !found.is_acknowledged && found.remaining == remaining)
        });
        let found = WorkLaw::AcknowledgedIsDurable
            .require(found, || format!("{spend:?} is acknowledged with {remaining:?}"))?;
        found.is_acknowledged = true;
        WorkLaw::ExactRemaining.ensure(found.remaining == remaining, || inexact(&found.remaining))
    }

    /// What is rejected for one of these reasons stays rejected: budgets only shrink, scopes do not change, an ended lease
    /// does not return.
    fn check_rejection(&mut self, command: &Command, rejection: &Rejection, stamp: Tick) -> InvariantResult {
        let (subject, key) = (subject_of(command), key_of(command));
        let is_justified = match rejection {
            Rejection::BudgetExceeded { remaining } => {
                self.check_exceeded(command, remaining.amounts(), stamp)?;
                true
            }
            Rejection::OutOfScope { .. } => !self.is_in_scope(command),
            Rejection::Ended { lease, .. } => {
                let lease_model = self.leases.get(lease);
                let has_ended = lease_model
                    .is_some_and(|found| found.ended_at.is_some() || *found.expires_at.last() <= stamp);
                // The lease of an earlier request with this key.
                if *lease != subject {
                    return WorkLaw::JustifiedRejections
                        .ensure(has_ended, || format!("{command:?}: {rejection:?}"));
                }
                has_ended
            }
            Rejection::NotHolder => !self.is_authorized(command),
            Rejection::OutlivesParent { remaining } => {
                return self.check_outlives(command, *remaining, stamp);
            }
            // A later request may succeed.
            _ => return Ok(()),
        };
        WorkLaw::JustifiedRejections.ensure(is_justified, || format!("{command:?}: {rejection:?}"))?;
        let Some(IdempotencyKey { key, .. }) = key else { return Ok(()) };
        self.rejected_keys.insert(key);
        let is_unused = !self.used_keys.contains(&key);
        WorkLaw::RejectedChangesNothing.ensure(is_unused, || format!("{command:?}: {rejection:?}"))
    }

    fn check_exceeded(&self, command: &Command, remaining: Amounts, stamp: Tick) -> InvariantResult {
        let amount = match command {
            Command::Work(work) => match &**work {
                WorkCommand::Derive(derive) => derive.child.budget,
                WorkCommand::Spend(spend) => spend.amount,
                WorkCommand::Claim(_) => Budget::ZERO,
            },
            _ => Budget::ZERO,
        };
        let exceeds = minus(remaining, amount.amounts()).is_none();
        WorkLaw::JustifiedRejections
            .ensure(exceeds, || format!("{command:?} is rejected with {remaining:?} remaining"))?;
        let history = &self.lease(subject_of(command))?.remaining;
        let is_exact = history.during(stamp).any(|amounts| *amounts == remaining);
        WorkLaw::ExactRemaining
            .ensure(is_exact, || format!("{command:?} is rejected with {remaining:?}, expected {history:?}"))
    }

    fn is_in_scope(&self, command: &Command) -> bool {
        let (Command::Work(work), Some(lease)) = (command, self.leases.get(&subject_of(command))) else {
            return true;
        };
        match &**work {
            WorkCommand::Claim(_) => true,
            WorkCommand::Derive(derive) => {
                lease.scope.allows(WORK_IDS, &derive.child.work_id)
                    && ScopeModel::new(&derive.child.scope).is_within(&lease.scope)
            }
            WorkCommand::Spend(spend) => lease.scope.allows_purpose(&spend.purpose),
        }
    }

    fn check_outlives(&self, command: &Command, remaining: TickDuration, stamp: Tick) -> InvariantResult {
        let (parent, ttl) = match command {
            Command::Work(work) => match &**work {
                WorkCommand::Derive(derive) => (Some(derive.parent), Some(derive.child.ttl)),
                _ => (None, None),
            },
            Command::Renew { lease, ttl, .. } => (self.lease(*lease)?.parent, *ttl),
            _ => (None, None),
        };
        let parent = parent.and_then(|parent| self.leases.get(&parent));
        let is_justified = parent.is_some_and(|parent| {
            parent.expires_at.during(stamp).any(|expires_at| expires_at.since(stamp) == remaining)
                && ttl.is_none_or(|ttl| ttl > remaining)
        });
        WorkLaw::JustifiedRejections.ensure(is_justified, || format!("{command:?}: {remaining:?} remaining"))
    }
}

pub(crate) fn key_of(command: &Command) -> Option<IdempotencyKey> {
    let Command::Work(work) = command else { return None };
    match &**work {
        WorkCommand::Claim(claim) => claim.key,
        WorkCommand::Derive(derive) => derive.child.key,
        WorkCommand::Spend(spend) => spend.key,
    }
}
