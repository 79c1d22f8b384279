//! Spend: something is used up, all of it or nothing.

use crate::authority::{Budget, SpendError};
use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::draft::Draft;
use crate::kernel::event::Event;
use crate::kernel::name::Principal;
use crate::kernel::state::KeyOutcome;
use crate::kernel::work::{Spend, WorkEvent};

/// Spending nothing appends nothing, and asks whether the lease lives and allows it.
pub(super) fn spend(draft: &mut Draft<'_>, spend: &Spend) -> Result<Answer, Refusal> {
    draft.check_is_not_held_back()?;
    if let Some(answer) = answer_again(draft, spend)? {
        return Ok(answer);
    }
    super::super::living(draft, spend.lease, Some(&spend.claim))?;
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
