//! Transfer: a lease goes to another holder, with no moment in between.

use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::command::Claim;
use crate::kernel::draft::{Draft, Grant};
use crate::kernel::event::Cause;
use crate::kernel::mode::Mode;
use crate::kernel::name::{Holder, Principal};
use crate::kernel::state::LeaseEntry;
use crate::kernel::value::{Fence, Nonce};
use crate::kernel::want::Want;

pub(super) fn transfer(
    draft: &mut Draft<'_>,
    fence: Fence,
    claim: &Claim,
    to: &Holder,
    principal: &Principal,
    nonce: Nonce,
) -> Result<Answer, Refusal> {
    let lease = super::living(draft, fence, Some(claim))?;
    let from = draft.state.holder_name(lease.holder);
    if draft.state.file_session(from).is_some() {
        // Its file is decided about with the session: a person gives it to another one.
        return Err(Refusal::HolderTaken { holder: from.clone() });
    }
    if !draft.state.may_be(to, principal, draft.now) {
        return Err(Refusal::HolderTaken { holder: to.clone() });
    }
    if let Some(most) = draft.state.limits().leases_per_principal {
        let own = draft.state.principal_of(lease.holder).1 == principal;
        if !own && (most == 0 || draft.uses_more_than(principal, most - 1, usize::MAX)) {
            return Err(Refusal::QuotaExceeded { most });
        }
    }
    check_fits_beside(draft, lease, to)?;
    // Whoever waits for this lease will wait for `to`: if that one waits for them, nobody ever moves. Not by this
    // lease, though: whoever gets it no longer waits for who had it.
    if let Some(cycle) = draft.without(lease, |draft| draft.circle_by_handing(lease, to)) {
        return Err(Refusal::Deadlock { cycle });
    }
    continue_as(
        draft,
        lease,
        Successor { holder: to, principal, mode: lease.mode, nonce, detail: "transferred" },
    )
}

/// Who holds a folder may also hold what is below it. In other hands, the two would be apart.
fn check_fits_beside(draft: &Draft<'_>, lease: &LeaseEntry, to: &Holder) -> Result<(), Refusal> {
    let state = draft.state;
    let resource = state.resource_name(lease.resource);
    let mut others = state.leases_around(resource).filter(|other| other.fence != lease.fence);
    let apart = others.find(|other| {
        draft.lives(other) && !other.mode.goes_with(lease.mode) && state.holder_name(other.holder) != to
    });
    let Some(other) = apart else { return Ok(()) };
    let (resource, holder) = (state.resource_name(other.resource), state.holder_name(other.holder).clone());
    let waiting = draft.waiting_on(resource);
    Err(Refusal::Held { resource: resource.clone(), holder, until: other.expires_at, waiting })
}

pub(super) struct Successor<'a> {
    pub(super) holder: &'a Holder,
    pub(super) principal: &'a Principal,
    pub(super) mode: Mode,
    pub(super) nonce: Nonce,
    pub(super) detail: &'a str,
}

/// Ends a lease and issues its successor at the same tick, with a full time to live and a new fence, so
/// that whatever the predecessor still sends is recognised as old.
pub(super) fn continue_as(
    draft: &mut Draft<'_>,
    lease: &LeaseEntry,
    successor: Successor<'_>,
) -> Result<Answer, Refusal> {
    let state = draft.state;
    draft.check_may_grant()?;
    super::check_may_hold(draft, successor.holder, successor.principal)?;
    if state.work(lease.fence).is_some() {
        return Err(Refusal::AuthorityBound);
    }
    if draft.now.checked_add(lease.ttl).is_none() || draft.fences_left() == 0 {
        return Err(Refusal::Exhausted);
    }
    let by = state.principal_of(lease.holder).1;
    draft.revoke(lease, Cause::Transferred, by, successor.detail);
    let resource = state.resource_name(lease.resource);
    let want = Want::new(resource.clone(), successor.mode, lease.ttl, successor.nonce);
    let want = want.labelled(lease.labels.clone());
    let fence = draft.issue(Grant {
        holder: successor.holder,
        principal: successor.principal,
        want: &want,
        resource,
        key: None,
        ticket: None,
        continues: Some(lease.fence),
        authority: None,
    })?;
    Ok(Answer::Continued { before: lease.fence, lease: fence })
}
