//! Upgrade and downgrade: the same holder, another mode.

use super::handover::{Successor, continue_as};
use crate::kernel::agent::Pending;
use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::command::ChangeMode;
use crate::kernel::draft::Draft;
use crate::kernel::mode::Modes;
use crate::kernel::name::Holder;
use crate::kernel::state::{LeaseEntry, Waiting, wants_apart};
use crate::kernel::value::Tick;

/// Succeeds only if nobody else is in the way, now: two that both hold and both wait to upgrade would
/// wait for ever. Waiters that the lease keeps out already are not overtaken by this; those that it does
/// not keep out yet would be, so they are in the way too.
pub(super) fn upgrade(draft: &mut Draft<'_>, change: &ChangeMode) -> Result<Answer, Refusal> {
    let lease = super::living(draft, change.lease, Some(&change.claim))?;
    if change.mode == lease.mode || !change.mode.covers(lease.mode) {
        return Err(Refusal::WrongDirection { from: lease.mode, to: change.mode, upgrade: true });
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
    if change.mode == lease.mode || !lease.mode.covers(change.mode) {
        return Err(Refusal::WrongDirection { from: lease.mode, to: change.mode, upgrade: false });
    }
    change_mode(draft, lease, change, "downgraded")
}

fn in_the_way(draft: &Draft<'_>, lease: &LeaseEntry, change: &ChangeMode) -> Option<(Holder, Tick)> {
    let state = draft.state;
    let resource = state.resource_name(lease.resource);
    let others = state.leases_around(resource).filter(|other| other.fence != lease.fence);
    let mut others = others.filter(|other| draft.lives(other) && !other.mode.goes_with(change.mode));
    if let Some(other) = others.next() {
        return Some((state.holder_name(other.holder).clone(), other.expires_at));
    }
    // Whoever was let in on the way, by a wait or a lease that was found to be over.
    let mut served = draft.granted_around(resource);
    if let Some(issued) = served.find(|issued| !issued.mode.goes_with(change.mode)) {
        return Some((issued.holder.clone(), issued.expires_at));
    }
    let newly_apart = Modes::kept_out_by(change.mode).except(Modes::kept_out_by(lease.mode));
    let overtaken = state.slots_around(resource).find_map(|slot| {
        let is_overtaken =
            |waiting: &&Waiting| waiting.modes_on(slot).meets(newly_apart) && draft.waits(waiting);
        state.queue_on(slot).find(is_overtaken)
    });
    let overtaken = overtaken.map(|waiting| (waiting.queued.holder.clone(), waiting.queued.until));
    overtaken.or_else(|| {
        let mut agents = draft.pending_apart(resource, change.mode);
        let is_new = |pending: &&Pending| !wants_apart(&pending.wants, resource, lease.mode);
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
