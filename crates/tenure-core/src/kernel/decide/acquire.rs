//! Acquire: all of the leases that were asked for, or none.

use std::sync::Arc;

use crate::authority::Authority;
use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::choice::Choice;
use crate::kernel::command::{Acquire, Contention};
use crate::kernel::draft::{Draft, Grant, Place};
use crate::kernel::event::{Event, Queued};
use crate::kernel::intent::ORCHESTRATOR;
use crate::kernel::name::Resource;
use crate::kernel::policy::{Verdict, on_contention, refreshes_own};
use crate::kernel::state::KeyOutcome;
use crate::kernel::value::{Fence, Span, Tick};
use crate::kernel::want::{Want, each_can_have_its_own, overlapping};
use crate::rules::names::InvalidInput;
use crate::rules::time::extends;

/// A lease that begins has `authority`.
pub(super) fn acquire(
    draft: &mut Draft<'_>,
    acquire: &Acquire,
    authority: Option<&Arc<Authority>>,
) -> Result<Answer, Refusal> {
    draft.check_is_not_held_back()?;
    // First of all: a repeated request finds its first answer, whatever has become of limits and names since.
    if let Some(answer) = answer_again(draft, acquire)? {
        return Ok(answer);
    }
    check(draft, acquire)?;
    for resource in acquire.wants.iter().flat_map(Want::resources) {
        draft.settle(resource);
    }

    // What it has already is not in its own way, and neither is who waits for that.
    let has = |want: &Want, resource: &Resource| own_lease(draft, acquire, want, resource).is_some();
    let choice = draft.choose(&acquire.wants, Place::default(), has);
    check_quota(draft, acquire, choice.as_ref().ok())?;
    let short = match choice {
        Ok(choice) => return grant(draft, acquire, &choice, authority),
        Err(short) => short,
    };
    match on_contention(acquire.contention, draft.now) {
        Verdict::Queue { until } if !draft.must_not_line_up(&acquire.holder) => queue(draft, acquire, until),
        _ => {
            let found = draft.in_the_way(&acquire.wants, &short, has);
            let (resource, blocker) = found.expect("with nothing in the way there is enough for each");
            let (waiting, holder) = (draft.waiting_on(resource), blocker.holder.clone());
            Err(Refusal::Held { resource: resource.clone(), holder, until: blocker.until, waiting })
        }
    }
}

/// The first answer to this request, if it was made before under the same key.
pub(super) fn answer_again(draft: &mut Draft<'_>, acquire: &Acquire) -> Result<Option<Answer>, Refusal> {
    let state = draft.state;
    let Some(key) = acquire.key else { return Ok(None) };
    if refreshes_own(acquire.contention) {
        let reason = "goes with new leases only; a request that refreshes its own may simply be repeated";
        return Err(InvalidInput::new("idempotencyKey", reason).into());
    }
    let Some(principal) = state.find_principal(&acquire.principal) else { return Ok(None) };
    let Some(entry) = state.keys().get(principal, key.key, draft.now) else { return Ok(None) };
    if entry.body != key.body {
        return Err(Refusal::KeyReused);
    }
    match &entry.outcome {
        KeyOutcome::Waiting(ticket) => {
            let waiting = state.waiting(*ticket);
            // Its key is free for this request only once it is known to be over.
            waiting.into_iter().for_each(|waiting| draft.time_out_if_over(waiting));
            Ok(waiting.filter(|waiting| draft.waits(waiting)).map(|waiting| {
                let place = Place { before: Some(*ticket) };
                queued_answer(draft, &waiting.queued, place)
            }))
        }
        KeyOutcome::Spent(_) => Err(Refusal::KeyReused),
        KeyOutcome::Leases(leases) => {
            for fence in leases {
                super::living(draft, *fence, None)?;
            }
            Ok(Some(Answer::Granted { leases: leases.clone() }))
        }
    }
}

fn check(draft: &Draft<'_>, acquire: &Acquire) -> Result<(), Refusal> {
    let limits = draft.state.limits();
    let invalid = |field, reason: String| Refusal::from(InvalidInput::new(field, reason));
    if acquire.wants.is_empty() {
        return Err(invalid("leases", "is empty; ask for at least one resource".into()));
    }
    if acquire.wants.len() > limits.wants {
        let reason = format!("has {} entries; at most {} are allowed", acquire.wants.len(), limits.wants);
        return Err(invalid("leases", reason));
    }
    if acquire.bytes() > limits.request_bytes {
        let reason = format!("names and labels have over {} bytes; ask in parts", limits.request_bytes);
        return Err(invalid("leases", reason));
    }
    let most = limits.alternatives;
    if acquire.wants.iter().any(|want| 1 + want.others.len() > most.max(1)) {
        return Err(invalid("leases", format!("names over {most} resources for one lease; name fewer")));
    }
    if !each_can_have_its_own(&acquire.wants) {
        let reason = "names a resource twice, or too few for each lease to be on another; ask for each once";
        return Err(invalid("leases", reason.into()));
    }
    if let Some((one, other)) = overlapping(&acquire.wants) {
        let reason =
            format!("names {one} and {other}, which overlap and cannot both be held like that; ask for one");
        return Err(invalid("leases", reason));
    }
    acquire.wants.iter().try_for_each(|want| check_ttl(draft, want.ttl))?;
    if let Contention::Queue { patience } = acquire.contention
        && patience > limits.longest_wait
    {
        let reason = format!("is over the longest wait of {} ms", limits.longest_wait.as_millis());
        return Err(invalid("waitMs", reason));
    }
    if !draft.state.may_be(&acquire.holder, &acquire.principal, draft.now) {
        return Err(Refusal::HolderTaken { holder: acquire.holder.clone() });
    }
    Ok(())
}

/// A time to live that is not permitted is refused, never clamped: the caller counts on what it asked for.
pub(super) fn check_ttl(draft: &Draft<'_>, ttl: Span) -> Result<(), Refusal> {
    let limits = draft.state.limits();
    let (shortest, longest) = (limits.shortest_ttl, limits.longest_ttl);
    if ttl < shortest || ttl > longest || ttl == Span(0) {
        return Err(Refusal::TtlOutOfRange { asked: ttl, shortest, longest });
    }
    Ok(())
}

fn check_quota(draft: &Draft<'_>, acquire: &Acquire, choice: Option<&Choice>) -> Result<(), Refusal> {
    let Some(most) = draft.state.limits().leases_per_principal else { return Ok(()) };
    // A quota is for those who ask; sessions have bounds of their own.
    if acquire.principal.as_str() == ORCHESTRATOR {
        return Ok(());
    }
    let has = |want: &Want, resource: &Resource| own_lease(draft, acquire, want, resource).is_some();
    let missing = match choice {
        Some(choice) => choice.of(&acquire.wants).filter(|(want, resource)| !has(want, resource)).count(),
        // It gets nothing now; whatever it gets later, it is at least this.
        None => {
            let wants = acquire.wants.iter();
            wants.filter(|want| !want.resources().any(|resource| has(want, resource))).count()
        }
    };
    let room = most.checked_sub(missing).filter(|_| missing > 0);
    let exceeds = match room {
        Some(room) => draft.uses_more_than(&acquire.principal, room, usize::MAX),
        None => missing > 0,
    };
    if exceeds { Err(Refusal::QuotaExceeded { most }) } else { Ok(()) }
}

fn grant(
    draft: &mut Draft<'_>,
    acquire: &Acquire,
    choice: &Choice,
    authority: Option<&Arc<Authority>>,
) -> Result<Answer, Refusal> {
    let (holder, principal, key) = (&acquire.holder, &acquire.principal, acquire.key);
    // All or nothing: whatever could end this half-way is asked before the first grant.
    let own = |(want, resource): (&Want, &Resource)| own_lease(draft, acquire, want, resource);
    let missing = choice.of(&acquire.wants).filter(|chosen| own(*chosen).is_none()).count();
    let has_time = |want: &Want| draft.now.checked_add(want.ttl).is_some();
    // Whether the holder has this already, and would have it for longer.
    let gets_time = |(want, resource): (&Want, &Resource)| {
        let until = draft.now.saturating_add(want.ttl);
        own((want, resource)).is_some_and(|(_, expires_at)| extends(expires_at.0, until.0))
    };
    if missing > 0 {
        draft.check_may_grant()?;
    } else if choice.of(&acquire.wants).any(gets_time) {
        draft.check_may_renew()?;
    }
    let outlives = |(want, resource): (&Want, &Resource)| {
        let lease = own((want, resource)).and_then(|(fence, _)| draft.state.find_lease(fence));
        let end = lease.and_then(|lease| draft.end_of_parent(lease));
        end.filter(|end| draft.now.saturating_add(want.ttl) > *end)
    };
    if let Some(end) = choice.of(&acquire.wants).filter(|chosen| gets_time(*chosen)).find_map(outlives) {
        return Err(Refusal::OutlivesParent { remaining: end.since(draft.now) });
    }
    if draft.fences_left() < missing as u64 || !acquire.wants.iter().all(has_time) {
        return Err(Refusal::Exhausted);
    }
    let mut leases = Vec::with_capacity(acquire.wants.len());
    for (want, resource) in choice.of(&acquire.wants) {
        let fence = match own_lease(draft, acquire, want, resource) {
            Some((fence, expires_at)) => {
                let until = draft.now.checked_add(want.ttl).ok_or(Refusal::Exhausted)?;
                if extends(expires_at.0, until.0) {
                    draft.push(Event::Renewed {
                        lease: fence,
                        at: draft.now,
                        expires_at: until,
                        ttl: want.ttl,
                    });
                }
                fence
            }
            None => {
                let (ticket, continues) = (None, None);
                draft.issue(Grant { holder, principal, want, resource, key, ticket, continues, authority })?
            }
        };
        leases.push(fence);
    }
    Ok(Answer::Granted { leases })
}

/// The lease that the holder already has on `resource`, where its face wants that to count. It may have got it
/// in this very decision, because it waited and its turn came.
fn own_lease(
    draft: &Draft<'_>,
    acquire: &Acquire,
    want: &Want,
    resource: &Resource,
) -> Option<(Fence, Tick)> {
    let state = draft.state;
    if !refreshes_own(acquire.contention) {
        return None;
    }
    let slot = state.find_resource(resource)?;
    let mut leases = state.leases_on(slot);
    let own = leases.find(|lease| {
        lease.terms.mode == want.mode
            && draft.lives(lease)
            && *state.holder_name(lease.holder) == acquire.holder
    });
    let served = || {
        let mut granted = draft.granted_on(resource);
        granted.find(|issued| issued.mode == want.mode && issued.holder == acquire.holder)
    };
    own.map(|lease| (lease.fence, lease.terms.expires_at))
        .or_else(|| served().map(|issued| (issued.fence, issued.expires_at)))
}

fn queue(draft: &mut Draft<'_>, acquire: &Acquire, until: Tick) -> Result<Answer, Refusal> {
    draft.check_may_grant()?;
    let limits = draft.state.limits();
    if acquire.wants.len() > limits.wants_waiting || acquire.bytes() > limits.waiting_bytes {
        let (wants, bytes) = (limits.wants_waiting, limits.waiting_bytes);
        let reason =
            format!("is too large to wait: at most {wants} leases and {bytes} bytes; ask without waiting");
        return Err(InvalidInput::new("leases", reason).into());
    }
    let full = |what: &str, most| Err(Refusal::QueueFull { what: what.into(), most });
    let most = limits.waiters_per_resource;
    let mut resources = acquire.wants.iter().flat_map(Want::resources);
    if let Some(resource) = resources.find(|resource| draft.waiting_on(resource) >= most) {
        return full(resource.as_str(), most);
    }
    let most = limits.waits_per_principal;
    if most == 0 || draft.uses_more_than(&acquire.principal, usize::MAX, most - 1) {
        return full(acquire.principal.as_str(), most);
    }
    if let Some(cycle) = draft.circle(&acquire.holder, &acquire.wants) {
        return Err(Refusal::Deadlock { cycle });
    }
    let queued = Queued {
        ticket: draft.state.last_ticket().next().ok_or(Refusal::Exhausted)?,
        holder: acquire.holder.clone(),
        principal: acquire.principal.clone(),
        wants: acquire.wants.clone(),
        at: draft.now,
        until,
        key: acquire.key,
    };
    let answer = queued_answer(draft, &queued, Place::default());
    draft.push(Event::Queued(queued));
    Ok(answer)
}

fn queued_answer(draft: &Draft<'_>, queued: &Queued, place: Place) -> Answer {
    let ahead = |resource: &Resource| {
        let slot = draft.state.find_resource(resource);
        let queue = slot.into_iter().flat_map(|slot| draft.state.queue_on(slot));
        let older = queue.take_while(|waiting| waiting.queued.ticket < queued.ticket);
        older.filter(|waiting| draft.waits(waiting)).count()
    };
    // Any one of a want's resources will do, so the shortest queue counts; all wants are needed, so the longest does.
    let shortest = |want: &Want| want.resources().map(ahead).min().unwrap_or(0);
    let position = 1 + queued.wants.iter().map(shortest).max().unwrap_or(0);
    let each = queued.wants.iter().flat_map(|want| want.resources().map(|resource| (resource, want.mode)));
    let blockers = each.flat_map(|(resource, mode)| draft.blockers(resource, mode, place));
    let mut blocked_by: Vec<_> = blockers.map(|blocker| blocker.holder.clone()).collect();
    blocked_by.sort_unstable();
    blocked_by.dedup();
    Answer::Queued { ticket: queued.ticket, position, until: queued.until, blocked_by }
}
