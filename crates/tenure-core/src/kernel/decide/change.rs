//! Renews leases, hands them over, and changes their mode.

use crate::kernel::agent::Pending;
use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::command::{ChangeMode, Claim};
use crate::kernel::draft::{Draft, Grant};
use crate::kernel::event::{Cause, Event};
use crate::kernel::mode::{Mode, Modes};
use crate::kernel::name::{Holder, Principal};
use crate::kernel::state::{LeaseEntry, Waiting, wants_apart};
use crate::kernel::value::{Fence, Nonce, Span, Tick};
use crate::kernel::want::Want;
use crate::rules::time::extends;

/// Succeeds only if nobody else is in the way, now: two that both hold and both wait to upgrade would
/// wait for ever. Waiters that the lease keeps out already are not overtaken by this; those that it does
/// not keep out yet would be, so they are in the way too.
pub(super) fn upgrade(draft: &mut Draft<'_>, change: &ChangeMode) -> Result<Answer, Refusal> {
    let lease = super::living(draft, change.lease, Some(&change.claim))?;
    if change.mode == lease.terms.mode || !change.mode.covers(lease.terms.mode) {
        return Err(Refusal::WrongDirection { from: lease.terms.mode, to: change.mode, upgrade: true });
    }
    draft.settle(draft.state.resource_name(lease.resource));
    if let Some((holder, until)) = in_the_way(draft, lease, change) {
        let resource = draft.state.resource_name(lease.resource).clone();
        let waiting = draft.waiting_on(&resource);
        return Err(Refusal::Held { resource, holder, until, waiting });
    }
    change_mode(draft, lease, change, "upgraded")
}

/// Always possible: whoever goes with the new mode is let in.
pub(super) fn downgrade(draft: &mut Draft<'_>, change: &ChangeMode) -> Result<Answer, Refusal> {
    let lease = super::living(draft, change.lease, Some(&change.claim))?;
    if change.mode == lease.terms.mode || !lease.terms.mode.covers(change.mode) {
        return Err(Refusal::WrongDirection { from: lease.terms.mode, to: change.mode, upgrade: false });
    }
    change_mode(draft, lease, change, "downgraded")
}

fn in_the_way(draft: &Draft<'_>, lease: &LeaseEntry, change: &ChangeMode) -> Option<(Holder, Tick)> {
    let state = draft.state;
    let resource = state.resource_name(lease.resource);
    let others = state.leases_around(resource).filter(|other| other.fence != lease.fence);
    let mut others = others.filter(|other| draft.lives(other) && !other.terms.mode.goes_with(change.mode));
    if let Some(other) = others.next() {
        return Some((state.holder_name(other.holder).clone(), other.terms.expires_at));
    }
    // Whoever was let in on the way, by a wait or a lease that was found to be over.
    let mut served = draft.granted_around(resource);
    if let Some(issued) = served.find(|issued| !issued.mode.goes_with(change.mode)) {
        return Some((issued.holder.clone(), issued.expires_at));
    }
    let newly_apart = Modes::kept_out_by(change.mode).except(Modes::kept_out_by(lease.terms.mode));
    let overtaken = state.slots_around(resource).find_map(|slot| {
        let is_overtaken =
            |waiting: &&Waiting| waiting.modes_on(slot).meets(newly_apart) && draft.waits(waiting);
        state.queue_on(slot).find(is_overtaken)
    });
    let overtaken = overtaken.map(|waiting| (waiting.queued.holder.clone(), waiting.queued.until));
    overtaken.or_else(|| {
        let mut agents = draft.pending_apart(resource, change.mode);
        let is_new = |pending: &&Pending| !wants_apart(&pending.wants, resource, lease.terms.mode);
        let agent = agents.find(is_new)?;
        Some((agent.rank.agent.clone(), agent.until))
    })
}

fn change_mode(
    draft: &mut Draft<'_>,
    lease: &LeaseEntry,
    change: &ChangeMode,
    detail: &str,
) -> Result<Answer, Refusal> {
    let state = draft.state;
    let (holder, principal) = (state.holder_name(lease.holder), state.principal_of(lease.holder).1);
    let (mode, nonce) = (change.mode, change.nonce);
    continue_as(draft, lease, Successor { holder, principal, mode, nonce, detail })
}

/// A renewal that would not extend succeeds and changes nothing: it never shortens.
pub(super) fn renew(
    draft: &mut Draft<'_>,
    fence: Fence,
    claim: &Claim,
    ttl: Option<Span>,
) -> Result<Answer, Refusal> {
    let lease = super::living(draft, fence, Some(claim))?;
    draft.check_is_not_held_back()?;
    let ttl = ttl.unwrap_or(lease.terms.ttl);
    super::acquire::check_ttl(draft, ttl)?;
    let expires_at = draft.now.checked_add(ttl).ok_or(Refusal::Exhausted)?;
    if !extends(lease.terms.expires_at.0, expires_at.0) {
        return Ok(Answer::Renewed { lease: fence, expires_at: lease.terms.expires_at });
    }
    draft.check_may_renew()?;
    if let Some(end) = draft.end_of_parent(lease)
        && expires_at > end
    {
        return Err(Refusal::OutlivesParent { remaining: end.since(draft.now) });
    }
    draft.push(Event::Renewed { lease: fence, at: draft.now, expires_at, ttl });
    Ok(Answer::Renewed { lease: fence, expires_at })
}

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
        Successor { holder: to, principal, mode: lease.terms.mode, nonce, detail: "transferred" },
    )
}

/// Who holds a folder may also hold what is below it. In other hands, the two would be apart.
fn check_fits_beside(draft: &Draft<'_>, lease: &LeaseEntry, to: &Holder) -> Result<(), Refusal> {
    let state = draft.state;
    let resource = state.resource_name(lease.resource);
    let mut others = state.leases_around(resource).filter(|other| other.fence != lease.fence);
    let apart = others.find(|other| {
        draft.lives(other)
            && !other.terms.mode.goes_with(lease.terms.mode)
            && state.holder_name(other.holder) != to
    });
    let Some(other) = apart else { return Ok(()) };
    let (resource, holder) = (state.resource_name(other.resource), state.holder_name(other.holder).clone());
    let waiting = draft.waiting_on(resource);
    Err(Refusal::Held { resource: resource.clone(), holder, until: other.terms.expires_at, waiting })
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
    if draft.now.checked_add(lease.terms.ttl).is_none() || draft.fences_left() == 0 {
        return Err(Refusal::Exhausted);
    }
    let by = state.principal_of(lease.holder).1;
    draft.revoke(lease, Cause::Transferred, by, successor.detail);
    let resource = state.resource_name(lease.resource);
    let want = Want::new(resource.clone(), successor.mode, lease.terms.ttl, successor.nonce);
    let want = want.labelled(lease.terms.labels.clone());
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
