//! What readers were shown against what stood in the ledger while they asked.

use super::answers::{Claims, ends_within, told};
use super::lives::{End, Lease, Lives};
use crate::history::History;
use crate::law::{Law, Violation};
use crate::operation::{Action, Answer, Life, Operation, Seen};

/// The part of the ledger that a reader may have seen, from its beginning up to an entry between these two.
#[derive(Clone, Copy)]
struct Reach {
    /// All up to here was acknowledged before it asked.
    least: u64,
    /// Nothing behind this had happened when it was answered.
    most: u64,
}

/// Looks for a moment that explains what each reader was shown.
pub(super) fn check(history: &History, lives: &Lives<'_>, claims: &Claims, violations: &mut Vec<Violation>) {
    if !lives.has_times {
        return;
    }
    let mut readers: Vec<&Operation> = history.operations.iter().collect();
    readers.retain(|one| matches!(one.action, Action::Show { .. } | Action::List { .. }));
    readers.sort_by_key(|one| one.invoked);
    let placed = history.operations.iter().zip(&claims.last);
    let mut written: Vec<(u64, u64)> =
        placed.filter_map(|(one, seq)| Some((one.latest(), (*seq)?))).collect();
    written.sort_unstable();
    let mut written = written.into_iter().peekable();
    let mut least = 0;
    for reader in readers {
        while let Some((_, seq)) = written.next_if(|(latest, _)| *latest < reader.invoked) {
            least = least.max(seq);
        }
        let happened = lives.moments.partition_point(|moment| moment.at <= reader.latest());
        let most = happened.checked_sub(1).map_or(0, |last| lives.moments[last].seq);
        violations.extend(explain(reader, lives, Reach { least, most: most.max(least) }).err());
    }
}

fn explain(reader: &Operation, lives: &Lives<'_>, reach: Reach) -> Result<(), Violation> {
    match (&reader.action, &reader.answer) {
        (Action::Show { fence, .. }, Some(Answer::Seen { leases })) => leases
            .iter()
            .filter(|seen| seen.fence == *fence)
            .try_for_each(|seen| one(reader, lives, seen, reach)),
        (Action::Show { fence, .. }, Some(Answer::Unknown)) => match lives.leases.get(fence) {
            Some(life) if life.over_at() > reader.latest() && life.began().seq <= reach.least => {
                Err(told(Law::ReadsAreFresh, "it was acknowledged before, and alive", reader, life))
            }
            _ => Ok(()),
        },
        (Action::List { resource }, Some(Answer::Seen { leases })) => {
            leases.iter().try_for_each(|seen| one(reader, lives, seen, reach))?;
            all(reader, lives, resource, leases, reach)
        }
        _ => Ok(()),
    }
}

fn one(reader: &Operation, lives: &Lives<'_>, seen: &Seen, reach: Reach) -> Result<(), Violation> {
    let Some(life) = lives.leases.get(&seen.fence).filter(|life| life.began().seq <= reach.most) else {
        let reason = format!("{} does not stand in the ledger, or came later", seen.fence);
        return Err(Violation::new(Law::ReadsAreTrue, reason).with(reader));
    };
    if (life.holder, life.mode) != (seen.holder.as_str(), seen.mode) {
        return Err(told(Law::ReadsAreTrue, "it has another holder or mode", reader, life));
    }
    let ended_as = |wanted: &[End]| {
        life.end.is_some_and(|(moment, end)| wanted.contains(&end) && moment.seq <= reach.most)
    };
    let is_true = match seen.state {
        Life::Active => has_term(life, reach, |end| ends_within(reader, seen.remaining_ms, end)),
        Life::Released => ended_as(&[End::Released, End::Revoked]),
        // It need not have been announced.
        Life::Expired => ended_as(&[End::Expired]) || has_term(life, reach, |end| end <= reader.latest()),
    };
    if is_true {
        return Ok(());
    }
    let was_over = life.end.is_some_and(|(moment, _)| moment.seq <= reach.least);
    let law = if seen.state == Life::Active && was_over { Law::ReadsAreFresh } else { Law::ReadsAreTrue };
    Err(told(law, "no part of the ledger that it can have seen says so", reader, life))
}

/// Whether the lease had such an end at one of the places that a reader may have seen.
fn has_term(life: &Lease<'_>, reach: Reach, fits: impl Fn(u64) -> bool) -> bool {
    let ended = life.end.map_or(u64::MAX, |(moment, _)| moment.seq);
    let next = life.terms.iter().skip(1).map(|(moment, _)| moment.seq).chain([ended]);
    let mut terms = life.terms.iter().zip(next);
    terms.any(|((moment, end), next)| moment.seq <= reach.most && reach.least < next.min(ended) && fits(*end))
}

fn all(
    reader: &Operation,
    lives: &Lives<'_>,
    resource: &str,
    seen: &[Seen],
    reach: Reach,
) -> Result<(), Violation> {
    for (fence, life) in lives.on(resource) {
        let is_listed = seen.iter().any(|one| one.fence == fence);
        let was_there = life.began().seq <= reach.least;
        let may_be_over = life.over_at() <= reader.latest()
            || life.end.is_some_and(|(moment, _)| moment.seq <= reach.most)
            || has_term(life, reach, |end| end <= reader.latest());
        if !is_listed && was_there && !may_be_over {
            return Err(told(Law::ReadsAreFresh, "it was acknowledged before, and alive", reader, life));
        }
    }
    // That all of it was so at one moment: nothing listed may have ended before another listed one began.
    let listed = || seen.iter().filter_map(|one| lives.leases.get(&one.fence));
    let latest = listed().map(|life| life.began().seq).max().unwrap_or(0);
    let ended_before = |life: &&Lease<'_>| life.end.is_some_and(|(moment, _)| moment.seq < latest);
    match listed().find(ended_before) {
        Some(life) => {
            Err(told(Law::ReadsAreTrue, "it ended before another that is listed began", reader, life))
        }
        None => Ok(()),
    }
}
