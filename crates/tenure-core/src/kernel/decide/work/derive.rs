//! Derive: a part of a lease for somebody else.

use super::claim::{acquire_of, authority_of};
use crate::authority::check_derived;
use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::draft::Draft;
use crate::kernel::limits::{DESCENDANTS, DESCENT};
use crate::kernel::work::Derive;

/// The child begins and its parent has less in one event, so that neither is ever without the other.
pub(super) fn derive(draft: &mut Draft<'_>, derive: &Derive) -> Result<Answer, Refusal> {
    draft.check_is_not_held_back()?;
    let child = &derive.child;
    super::super::check_may_hold(draft, &child.holder, &child.principal)?;
    let acquire = acquire_of(child)?;
    // A repeated request finds its child, whatever its parent has left by now.
    if let Some(answer) = super::super::acquire::answer_again(draft, &acquire)? {
        return Ok(answer);
    }
    let parent = super::super::living(draft, derive.parent, Some(&derive.claim))?;
    let work = draft.state.work(derive.parent).ok_or(Refusal::NoAuthority)?;
    super::super::acquire::check_ttl(draft, child.ttl)?;
    let authority = authority_of(child, Some(derive.parent))?;
    let expires_at = draft.now.checked_add(child.ttl).ok_or(Refusal::Exhausted)?;
    let has = (&work.authority.scope, work.left, parent.expires_at);
    check_derived(has, &child.work_id, (&child.scope, child.budget, expires_at))
        .map_err(|error| Refusal::of_derive(&error, draft))?;
    if !draft.state.may_have_child(derive.parent) {
        return Err(Refusal::TreeFull { most: DESCENDANTS, deep: DESCENT });
    }
    super::super::acquire::acquire(draft, &acquire, Some(&authority))
}
