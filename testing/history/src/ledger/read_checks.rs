//! What readers were shown against what stood in the ledger while they asked.

use super::response_checks::{MatchedEntries, is_promised_expiry, lease_violation};
use super::timeline::{LeaseEnd, LeaseTimeline, Timeline};
use crate::history::History;
use crate::law::{Law, Violation};
use crate::operation::{Action, ObservedLease, ObservedState, Operation, OperationResponse};

/// The part of the ledger that a reader may have seen, from its beginning up to an entry between these two.
#[derive(Clone, Copy)]
struct VisibleRange {
    /// All up to here was acknowledged before it asked.
    min_seq: u64,
    /// Nothing behind this had happened when it was answered.
    max_seq: u64,
}

/// Looks for a moment that explains what each reader was shown.
pub(super) fn check(
    history: &History,
    timeline: &Timeline<'_>,
    claims: &MatchedEntries,
    violations: &mut Vec<Violation>,
) {
    if !timeline.has_times {
        return;
    }
    let mut readers: Vec<&Operation> = history.operations.iter().collect();
    readers.retain(|one| matches!(one.action, Action::Show { .. } | Action::List { .. }));
    readers.sort_by_key(|one| one.invoked);
    let placed = history.operations.iter().zip(&claims.last);
    let mut written: Vec<(u64, u64)> =
        placed.filter_map(|(one, seq)| Some((one.latest_effect_time(), (*seq)?))).collect();
    written.sort_unstable();
    let mut written = written.into_iter().peekable();
    let mut least = 0;
    for reader in readers {
        while let Some((_, seq)) = written.next_if(|(latest, _)| *latest < reader.invoked) {
            least = least.max(seq);
        }
        let known_moments =
            timeline.moments.partition_point(|moment| moment.at <= reader.latest_effect_time());
        let max_seq = known_moments.checked_sub(1).map_or(0, |last| timeline.moments[last].seq);
        violations.extend(
            explain(reader, timeline, VisibleRange { min_seq: least, max_seq: max_seq.max(least) }).err(),
        );
    }
}

fn explain(reader: &Operation, timeline: &Timeline<'_>, visible: VisibleRange) -> Result<(), Violation> {
    match (&reader.action, &reader.answer) {
        (Action::Show { fence, .. }, Some(OperationResponse::Seen { leases })) => leases
            .iter()
            .filter(|seen| seen.fence == *fence)
            .try_for_each(|seen| check_observation(reader, timeline, seen, visible)),
        (Action::Show { fence, .. }, Some(OperationResponse::Unknown)) => match timeline.leases.get(fence) {
            Some(life)
                if life.ended_at() > reader.latest_effect_time() && life.started().seq <= visible.min_seq =>
            {
                Err(lease_violation(Law::NoStaleReads, "it was acknowledged before, and alive", reader, life))
            }
            _ => Ok(()),
        },
        (Action::List { resource }, Some(OperationResponse::Seen { leases })) => {
            leases.iter().try_for_each(|seen| check_observation(reader, timeline, seen, visible))?;
            check_listing(reader, timeline, resource, leases, visible)
        }
        _ => Ok(()),
    }
}

fn check_observation(
    reader: &Operation,
    timeline: &Timeline<'_>,
    seen: &ObservedLease,
    reach: VisibleRange,
) -> Result<(), Violation> {
    let Some(life) = timeline.leases.get(&seen.fence).filter(|life| life.started().seq <= reach.max_seq)
    else {
        let reason = format!("{} does not stand in the ledger, or came later", seen.fence);
        return Err(Violation::new(Law::AccurateReads, reason).with_operation(reader));
    };
    if (life.holder, life.mode) != (seen.holder.as_str(), seen.mode) {
        return Err(lease_violation(Law::AccurateReads, "it has another holder or mode", reader, life));
    }
    let ended_as = |kinds: &[LeaseEnd]| {
        life.end.is_some_and(|(moment, end)| kinds.contains(&end) && moment.seq <= reach.max_seq)
    };
    let is_true = match seen.state {
        ObservedState::Active => {
            has_term(life, reach, |end| is_promised_expiry(reader, seen.remaining_ms, end))
        }
        ObservedState::Released => ended_as(&[LeaseEnd::Released, LeaseEnd::Revoked]),
        // It need not have been announced.
        ObservedState::Expired => {
            ended_as(&[LeaseEnd::Expired]) || has_term(life, reach, |end| end <= reader.latest_effect_time())
        }
    };
    if is_true {
        return Ok(());
    }
    let had_ended = life.end.is_some_and(|(moment, _)| moment.seq <= reach.min_seq);
    let law =
        if seen.state == ObservedState::Active && had_ended { Law::NoStaleReads } else { Law::AccurateReads };
    Err(lease_violation(law, "no part of the ledger that it can have seen says so", reader, life))
}

/// Whether the lease had such an end at one of the places that a reader may have seen.
fn has_term(life: &LeaseTimeline<'_>, reach: VisibleRange, fits: impl Fn(u64) -> bool) -> bool {
    let ended = life.end.map_or(u64::MAX, |(moment, _)| moment.seq);
    let next = life.terms.iter().skip(1).map(|(moment, _)| moment.seq).chain([ended]);
    let mut terms = life.terms.iter().zip(next);
    terms.any(|((moment, end), next)| {
        moment.seq <= reach.max_seq && reach.min_seq < next.min(ended) && fits(*end)
    })
}

fn check_listing(
    reader: &Operation,
    timeline: &Timeline<'_>,
    resource: &str,
    seen: &[ObservedLease],
    reach: VisibleRange,
) -> Result<(), Violation> {
    for (fence, life) in timeline.leases_on(resource) {
        let is_listed = seen.iter().any(|one| one.fence == fence);
        let was_there = life.started().seq <= reach.min_seq;
        let may_have_ended = life.ended_at() <= reader.latest_effect_time()
            || life.end.is_some_and(|(moment, _)| moment.seq <= reach.max_seq)
            || has_term(life, reach, |end| end <= reader.latest_effect_time());
        if !is_listed && was_there && !may_have_ended {
            return Err(lease_violation(
                Law::NoStaleReads,
                "it was acknowledged before, and alive",
                reader,
                life,
            ));
        }
    }
    // That all of it was so at one moment: nothing listed may have ended before another listed one began.
    let listed = || seen.iter().filter_map(|one| timeline.leases.get(&one.fence));
    let latest = listed().map(|life| life.started().seq).max().unwrap_or(0);
    let ended_before = |life: &&LeaseTimeline<'_>| life.end.is_some_and(|(moment, _)| moment.seq < latest);
    match listed().find(ended_before) {
        Some(life) => Err(lease_violation(
            Law::AccurateReads,
            "it ended before another that is listed began",
            reader,
            life,
        )),
        None => Ok(()),
    }
}
