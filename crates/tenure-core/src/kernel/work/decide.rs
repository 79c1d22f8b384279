//! Decides the commands of work leases, and the ends of those derived from a lease that ends.

use std::sync::Arc;

use crate::authority::{Authority, Budget, DeriveError, SpendError, check_derived, work_resource};
use crate::kernel::api_decisions::check_may_hold;
use crate::kernel::command::{Acquire, ContentionPolicy};
use crate::kernel::event::{Event, RevocationCause};
use crate::kernel::lease::decision_builder::DecisionBuilder;
use crate::kernel::lease::lease_request::LeaseRequest;
use crate::kernel::lease::{acquire, active_lease};
use crate::kernel::outcome::{CommandOutcome, Rejection};
use crate::kernel::state::{IdempotencyOutcome, LeaseEntry};
use crate::kernel::work::{ClaimWork, DeriveLease, SpendBudget, WorkCommand, WorkEvent};
use crate::rules::is_expired;
use crate::value::{Fence, LeaseMode, MAX_DERIVATION_DEPTH, MAX_DESCENDANTS, Principal, Tick};

/// Detail of the revocation of a lease whose parent ended.
const PARENT_ENDED: &str = "the lease that it was derived from ended";

pub(in crate::kernel) fn decide(
    decision: &mut DecisionBuilder<'_>,
    command: &WorkCommand,
) -> Result<CommandOutcome, Rejection> {
    match command {
        WorkCommand::Claim(request) => claim(decision, request),
        WorkCommand::Derive(request) => derive(decision, request),
        WorkCommand::Spend(request) => spend(decision, request),
    }
}

impl Rejection {
    /// Why a child cannot be like that, said to who asked at this tick.
    fn from_derive_error(error: &DeriveError, decision: &DecisionBuilder<'_>) -> Rejection {
        match error {
            DeriveError::WorkOutOfScope => Rejection::OutOfScope { what: "work_id" },
            DeriveError::ScopeTooWide => Rejection::OutOfScope { what: "scope" },
            DeriveError::OutlivesParent { parent_expires_at } => {
                Rejection::OutlivesParent { remaining: parent_expires_at.since(decision.now) }
            }
            DeriveError::Budget(exceeded) => Rejection::BudgetExceeded { remaining: exceeded.remaining },
        }
    }

    fn from_spend_error(error: &SpendError) -> Rejection {
        match error {
            SpendError::OutOfScope => Rejection::OutOfScope { what: "for" },
            SpendError::Budget(exceeded) => Rejection::BudgetExceeded { remaining: exceeded.remaining },
        }
    }
}

/// An ordinary lease in all but what it says of its authority. Nobody waits for it: who comes second asks again.
fn claim(decision: &mut DecisionBuilder<'_>, claim: &ClaimWork) -> Result<CommandOutcome, Rejection> {
    check_may_hold(decision, &claim.holder, &claim.principal)?;
    acquire::acquire(decision, &to_acquire(claim)?, Some(&to_authority(claim, None)?))
}

fn to_acquire(claim: &ClaimWork) -> Result<Acquire, Rejection> {
    let resource = work_resource(&claim.work_id)?;
    let request = LeaseRequest::new(resource, LeaseMode::Exclusive, claim.ttl, claim.nonce)
        .with_labels(claim.labels.clone());
    Ok(Acquire {
        principal: claim.principal.clone(),
        holder: claim.holder.clone(),
        requests: vec![request],
        contention_policy: ContentionPolicy::Deny,
        key: claim.key,
    })
}

fn to_authority(claim: &ClaimWork, parent: Option<Fence>) -> Result<Arc<Authority>, Rejection> {
    claim.budget.check()?;
    Ok(Arc::new(Authority { parent, scope: claim.scope.clone(), budget: claim.budget }))
}

/// The child begins and its parent has less in one event, so that neither is ever without the other.
fn derive(decision: &mut DecisionBuilder<'_>, derive: &DeriveLease) -> Result<CommandOutcome, Rejection> {
    decision.check_not_in_restore_quarantine()?;
    let child = &derive.child;
    check_may_hold(decision, &child.holder, &child.principal)?;
    let acquire = to_acquire(child)?;
    // A repeated request finds its child, whatever its parent has left by now.
    if let Some(answer) = acquire::find_idempotent_outcome(decision, &acquire)? {
        return Ok(answer);
    }
    let parent = active_lease(decision, derive.parent, Some(&derive.credential))?;
    let work = decision.state.work_lease(derive.parent).ok_or(Rejection::NoAuthority)?;
    acquire::check_ttl(decision, child.ttl)?;
    let authority = to_authority(child, Some(derive.parent))?;
    let expires_at = decision.now.checked_add(child.ttl).ok_or(Rejection::Exhausted)?;
    let has = (&work.authority.scope, work.remaining, parent.terms.expires_at);
    check_derived(has, &child.work_id, (&child.scope, child.budget, expires_at))
        .map_err(|error| Rejection::from_derive_error(&error, decision))?;
    if !decision.state.can_derive(derive.parent) {
        return Err(Rejection::TooManyDerived {
            max_descendants: MAX_DESCENDANTS,
            max_depth: MAX_DERIVATION_DEPTH,
        });
    }
    acquire::acquire(decision, &acquire, Some(&authority))
}

/// Spending nothing appends nothing, and asks whether the lease lives and allows it.
fn spend(decision: &mut DecisionBuilder<'_>, spend: &SpendBudget) -> Result<CommandOutcome, Rejection> {
    decision.check_not_in_restore_quarantine()?;
    if let Some(answer) = find_idempotent_outcome(decision, spend)? {
        return Ok(answer);
    }
    active_lease(decision, spend.lease, Some(&spend.credential))?;
    let work = decision.state.work_lease(spend.lease).ok_or(Rejection::NoAuthority)?;
    spend.amount.check()?;
    spend.purpose.check()?;
    if !work.authority.scope.allows(&spend.purpose) {
        return Err(Rejection::from_spend_error(&SpendError::OutOfScope));
    }
    let remaining =
        work.remaining.minus(spend.amount).map_err(|error| Rejection::from_spend_error(&error.into()))?;
    if spend.amount != Budget::ZERO {
        decision.check_may_grant()?;
        decision.push(Event::Work(Box::new(WorkEvent::Spent {
            lease: spend.lease,
            at: decision.now,
            amount: spend.amount,
            purpose: spend.purpose.clone(),
            key: spend.key,
        })));
    }
    Ok(CommandOutcome::Spent { lease: spend.lease, remaining })
}

/// The first answer to this request, if it was made before under the same key. Keys are those of whom the lease belongs to:
/// whoever has its token speaks for that one.
fn find_idempotent_outcome(
    decision: &DecisionBuilder<'_>,
    spend: &SpendBudget,
) -> Result<Option<CommandOutcome>, Rejection> {
    let state = decision.state;
    let Some(key) = spend.key else { return Ok(None) };
    let live = state.find_lease(spend.lease).map(|lease| state.principal_of(lease.holder).1);
    let principal: Option<&Principal> =
        live.or_else(|| state.ended_lease(spend.lease).map(|ended| &ended.principal));
    let Some(principal) = principal.and_then(|principal| state.find_principal(principal)) else {
        return Ok(None);
    };
    let Some(entry) = state.idempotency_keys().get(principal, key.key, decision.now) else { return Ok(None) };
    match &entry.outcome {
        IdempotencyOutcome::Spent(spent) if entry.body == key.body && spent.lease == spend.lease => {
            Ok(Some(CommandOutcome::Spent { lease: spend.lease, remaining: spent.remaining }))
        }
        _ => Err(Rejection::KeyReused),
    }
}

/// Ends the leases derived from a lease that ends, the youngest first, so that none is ever without its parent.
pub(crate) fn end_derived_leases(decision: &mut DecisionBuilder<'_>, lease: Fence) {
    let state = decision.state;
    for fence in state.derived_leases(lease).into_iter().rev() {
        let Some(child) = state.find_lease(fence).filter(|_| !decision.ended_leases.contains(&fence)) else {
            continue;
        };
        let at = decision.now;
        decision.push_without_cascade(if is_expired(at.0, child.terms.expires_at.0) {
            Event::Expired { lease: fence, at }
        } else {
            let by = state.principal_of(child.holder).1.clone();
            Event::Revoked {
                lease: fence,
                at,
                cause: RevocationCause::Revoked,
                by,
                detail: PARENT_ENDED.into(),
            }
        });
        decision.mark_ended(child);
    }
}

/// When the parent of a derived lease expires: a renewal must not extend beyond that.
pub(crate) fn parent_expires_at(decision: &DecisionBuilder<'_>, lease: &LeaseEntry) -> Option<Tick> {
    let parent: Fence = decision.state.work_lease(lease.fence)?.authority.parent?;
    decision.state.find_lease(parent).map(|parent| parent.terms.expires_at)
}
