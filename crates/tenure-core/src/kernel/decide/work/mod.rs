//! Decides the commands of work leases.

use std::sync::Arc;

use super::{check_may_hold, living};
use crate::authority::{Authority, Budget, DeriveError, SpendError, check_derived, work_resource};
use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::command::{Acquire, Contention};
use crate::kernel::draft::Draft;
use crate::kernel::event::Event;
use crate::kernel::limits::{DESCENDANTS, DESCENT};
use crate::kernel::mode::Mode;
use crate::kernel::name::Principal;
use crate::kernel::state::KeyOutcome;
use crate::kernel::value::Fence;
use crate::kernel::want::Want;
use crate::kernel::work::{ClaimWork, Derive, Spend, WorkCommand, WorkEvent};

pub(super) fn decide(draft: &mut Draft<'_>, command: &WorkCommand) -> Result<Answer, Refusal> {
    match command {
        WorkCommand::Claim(request) => claim(draft, request),
        WorkCommand::Derive(request) => derive(draft, request),
        WorkCommand::Spend(request) => spend(draft, request),
    }
}

impl Refusal {
    /// Why a child cannot be like that, said to who asked at this tick.
    fn of_derive(error: &DeriveError, draft: &Draft<'_>) -> Refusal {
        match error {
            DeriveError::WorkOutOfScope => Refusal::OutOfScope { what: "work_id" },
            DeriveError::ScopeTooWide => Refusal::OutOfScope { what: "scope" },
            DeriveError::OutlivesParent { parent_expires_at } => {
                Refusal::OutlivesParent { remaining: parent_expires_at.since(draft.now) }
            }
            DeriveError::Budget(exceeded) => Refusal::BudgetExceeded { left: exceeded.left },
        }
    }

    fn of_spend(error: &SpendError) -> Refusal {
        match error {
            SpendError::OutOfScope => Refusal::OutOfScope { what: "for" },
            SpendError::Budget(exceeded) => Refusal::BudgetExceeded { left: exceeded.left },
        }
    }
}

/// An ordinary lease in all but what it says of its authority. Nobody waits for it: who comes second asks again.
fn claim(draft: &mut Draft<'_>, claim: &ClaimWork) -> Result<Answer, Refusal> {
    check_may_hold(draft, &claim.holder, &claim.principal)?;
    super::acquire::acquire(draft, &acquire_of(claim)?, Some(&authority_of(claim, None)?))
}

fn acquire_of(claim: &ClaimWork) -> Result<Acquire, Refusal> {
    let resource = work_resource(&claim.work_id)?;
    let want = Want::new(resource, Mode::Exclusive, claim.ttl, claim.nonce).labelled(claim.labels.clone());
    Ok(Acquire {
        principal: claim.principal.clone(),
        holder: claim.holder.clone(),
        wants: vec![want],
        contention: Contention::Refuse,
        key: claim.key,
    })
}

fn authority_of(claim: &ClaimWork, parent: Option<Fence>) -> Result<Arc<Authority>, Refusal> {
    claim.budget.check()?;
    Ok(Arc::new(Authority { parent, scope: claim.scope.clone(), budget: claim.budget }))
}

/// The child begins and its parent has less in one event, so that neither is ever without the other.
fn derive(draft: &mut Draft<'_>, derive: &Derive) -> Result<Answer, Refusal> {
    draft.check_is_not_held_back()?;
    let child = &derive.child;
    check_may_hold(draft, &child.holder, &child.principal)?;
    let acquire = acquire_of(child)?;
    // A repeated request finds its child, whatever its parent has left by now.
    if let Some(answer) = super::acquire::answer_again(draft, &acquire)? {
        return Ok(answer);
    }
    let parent = living(draft, derive.parent, Some(&derive.claim))?;
    let work = draft.state.work(derive.parent).ok_or(Refusal::NoAuthority)?;
    super::acquire::check_ttl(draft, child.ttl)?;
    let authority = authority_of(child, Some(derive.parent))?;
    let expires_at = draft.now.checked_add(child.ttl).ok_or(Refusal::Exhausted)?;
    let has = (&work.authority.scope, work.left, parent.terms.expires_at);
    check_derived(has, &child.work_id, (&child.scope, child.budget, expires_at))
        .map_err(|error| Refusal::of_derive(&error, draft))?;
    if !draft.state.may_have_child(derive.parent) {
        return Err(Refusal::TreeFull { most: DESCENDANTS, deep: DESCENT });
    }
    super::acquire::acquire(draft, &acquire, Some(&authority))
}

/// Spending nothing appends nothing, and asks whether the lease lives and allows it.
fn spend(draft: &mut Draft<'_>, spend: &Spend) -> Result<Answer, Refusal> {
    draft.check_is_not_held_back()?;
    if let Some(answer) = answer_again(draft, spend)? {
        return Ok(answer);
    }
    living(draft, spend.lease, Some(&spend.claim))?;
    let work = draft.state.work(spend.lease).ok_or(Refusal::NoAuthority)?;
    spend.amount.check()?;
    spend.purpose.check()?;
    if !work.authority.scope.contains(&spend.purpose) {
        return Err(Refusal::of_spend(&SpendError::OutOfScope));
    }
    let left = work.left.minus(spend.amount).map_err(|error| Refusal::of_spend(&error.into()))?;
    if spend.amount != Budget::NOTHING {
        draft.check_may_grant()?;
        draft.push(Event::Work(Box::new(WorkEvent::Spent {
            lease: spend.lease,
            at: draft.now,
            amount: spend.amount,
            purpose: spend.purpose.clone(),
            key: spend.key,
        })));
    }
    Ok(Answer::Spent { lease: spend.lease, left })
}

/// The first answer to this request, if it was made before under the same key. Keys are those of whom the lease belongs to:
/// whoever has its token speaks for that one.
fn answer_again(draft: &Draft<'_>, spend: &Spend) -> Result<Option<Answer>, Refusal> {
    let state = draft.state;
    let Some(key) = spend.key else { return Ok(None) };
    let live = state.find_lease(spend.lease).map(|lease| state.principal_of(lease.holder).1);
    let principal: Option<&Principal> =
        live.or_else(|| state.ended(spend.lease).map(|ended| &ended.principal));
    let Some(principal) = principal.and_then(|principal| state.find_principal(principal)) else {
        return Ok(None);
    };
    let Some(entry) = state.keys().get(principal, key.key, draft.now) else { return Ok(None) };
    match &entry.outcome {
        KeyOutcome::Spent(spent) if entry.body == key.body && spent.lease == spend.lease => {
            Ok(Some(Answer::Spent { lease: spend.lease, left: spent.left }))
        }
        _ => Err(Refusal::KeyReused),
    }
}
