//! Declare: everything that an agent is about to touch, or nothing of it.

use crate::kernel::agent::{AgentAnswer, AgentEvent, Declare, Pending, Rank};
use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::dying::Fate;
use crate::kernel::event::Event;
use crate::kernel::limits::LATEST_PRIORITY;
use crate::kernel::name::Holder;
use crate::kernel::value::Ticket;
use crate::kernel::want::{Want, widest};
use crate::rules::names::{InvalidInput, check_name};
use crate::rules::overlap::has_parts;
use crate::rules::time::is_over;

/// Whatever is refused leaves nothing behind: a caller must not fill the disk.
pub(super) fn declare(draft: &mut Draft<'_>, declare: &Declare) -> Result<AgentAnswer, Refusal> {
    draft.check_is_not_held_back()?;
    check(draft, declare)?;
    super::check_own(draft, &declare.agent, &declare.principal)?;
    widest(&declare.wants).for_each(|want| draft.settle(&want.resource));
    draft.time_out_agents(usize::MAX);
    // Whether its attempt goes on is known only once everybody knows what it has lost.
    draft.expire_all_of(&declare.agent);
    let rank = Rank { priority: declare.priority, agent: declare.agent.clone() };
    draft.declaring = Some(declare.principal.clone());
    if begins(draft, declare)? {
        draft.begun = Some(rank.clone());
    }
    let answer = judge(draft, declare, &rank)?;
    draft.settle_agents();
    Ok(draft.after_settling(&declare.agent, answer))
}

fn judge(draft: &mut Draft<'_>, declare: &Declare, rank: &Rank) -> Result<AgentAnswer, Refusal> {
    let again = draft.pending_of(&declare.agent).find(|pending| is_same(&pending.wants, &declare.wants));
    let again = again.map(|pending| (pending.ticket, pending.until));
    match draft.fate(&declare.wants, rank) {
        Fate::Free => {
            draft.check_may_grant()?;
            let ticket = again.map(|(ticket, _)| ticket);
            check_means(draft, declare, ticket)?;
            begin(draft, declare);
            let leases = draft.give(&declare.agent, &declare.principal, &declare.wants, ticket);
            Ok(AgentAnswer::Granted { leases })
        }
        Fate::Waits(blocked_by) => {
            let position = position(draft, declare, rank);
            if let Some((ticket, until)) = again {
                return Ok(AgentAnswer::Wait { ticket, position, until, blocked_by });
            }
            wait(draft, declare, rank, position, blocked_by)
        }
        Fate::Dies(blocked_by) => {
            // Who comes back too early is told the same again, and nothing is written.
            let retry_at = draft.state.agent(&declare.agent).and_then(|agent| agent.retry_at);
            if let Some(retry_at) = retry_at.filter(|retry_at| !is_over(draft.now.0, retry_at.0))
                && !draft.holds_what_an_older_one_waits_for(rank)
            {
                return Ok(AgentAnswer::Die { retry_at, blocked_by, ended: Vec::new() });
            }
            draft.check_may_grant()?;
            begin(draft, declare);
            let (retry_at, ended) = draft.die(rank);
            Ok(AgentAnswer::Die { retry_at, blocked_by, ended })
        }
    }
}

fn wait(
    draft: &mut Draft<'_>,
    declare: &Declare,
    rank: &Rank,
    position: usize,
    blocked_by: Vec<Holder>,
) -> Result<AgentAnswer, Refusal> {
    draft.check_may_grant()?;
    let limits = draft.state.limits();
    let (waits, wanted) = draft.state.pending_load();
    if waits >= limits.pending || wanted + declare.wants.len() > limits.pending_wants {
        return Err(Refusal::QueueFull { what: "agents".into(), most: limits.pending });
    }
    if draft.pending_of(&declare.agent).count() >= limits.pending_of_agent {
        return Err(Refusal::QueueFull {
            what: declare.agent.as_str().into(),
            most: limits.pending_of_agent,
        });
    }
    check_means(draft, declare, None)?;
    let ticket = draft.state.last_ticket().next().ok_or(Refusal::Exhausted)?;
    let until = draft.now.checked_add(declare.patience).ok_or(Refusal::Exhausted)?;
    let pending = Pending { ticket, rank: rank.clone(), wants: declare.wants.clone(), at: draft.now, until };
    begin(draft, declare);
    draft.push(Event::Agent(Box::new(AgentEvent::Waits(pending.clone()))));
    draft.new_pending = Some(pending);
    // Whoever younger waits for something of it would wait for an older one now.
    widest(&declare.wants).for_each(|want| draft.stir(&want.resource));
    Ok(AgentAnswer::Wait { ticket, position, until, blocked_by })
}

/// Whether an attempt begins. The age is said once for an attempt, and a new attempt never makes anybody older.
fn begins(draft: &Draft<'_>, declare: &Declare) -> Result<bool, Refusal> {
    let known = draft.state.agent(&declare.agent).and_then(|agent| Some((agent.priority?, agent.used_up)));
    let is_engaged = draft.is_engaged(&declare.agent);
    match known {
        Some((has, true)) if declare.priority <= has => Err(Refusal::LeaseTimeUsed { has }),
        Some((has, _)) if declare.priority == has && is_engaged => Ok(false),
        Some((has, _)) if is_engaged || declare.priority < has => Err(Refusal::PriorityFixed { has }),
        _ => Ok(true),
    }
}

/// Says that an attempt begins, if one does. Only once something comes of it: who is refused has begun nothing, and can be
/// refused as often as it likes without filling the disk.
fn begin(draft: &mut Draft<'_>, declare: &Declare) {
    let Some(rank) = draft.begun.clone() else { return };
    draft.push(Event::Agent(Box::new(AgentEvent::Began {
        rank,
        principal: declare.principal.clone(),
        session: declare.session.clone(),
        at: draft.now,
    })));
}

fn check(draft: &Draft<'_>, declare: &Declare) -> Result<(), Refusal> {
    let limits = draft.state.limits();
    let invalid = |field, reason: String| Refusal::from(InvalidInput::new(field, reason));
    check_name("session_id", &declare.session)?;
    if declare.priority > LATEST_PRIORITY {
        let reason = format!("is over {LATEST_PRIORITY}; say when the attempt began, in milliseconds");
        return Err(invalid("priority_timestamp", reason));
    }
    if declare.wants.is_empty() || declare.wants.len() > limits.wants {
        return Err(invalid("intents", format!("has to have from 1 to {} entries", limits.wants)));
    }
    let bytes: usize = declare.wants.iter().map(|want| want.resource.as_str().len()).sum();
    if bytes > limits.request_bytes {
        let reason =
            format!("names have {bytes} bytes together; at most {} are allowed", limits.request_bytes);
        return Err(invalid("intents", reason));
    }
    let mut names: Vec<_> = declare.wants.iter().map(|want| &want.resource).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(invalid("intents", "names a resource twice".into()));
    }
    let is_plain = |want: &Want| has_parts(want.resource.as_str()) && want.others.is_empty();
    if let Some(want) = declare.wants.iter().find(|want| !is_plain(want)) {
        return Err(invalid("intents", format!("{} is of no kind that agents know", want.resource)));
    }
    if declare.patience.0 == 0 || declare.patience > limits.longest_wait {
        return Err(invalid(
            "waitTimeoutMs",
            "has to be more than nothing, and not over the longest wait".into(),
        ));
    }
    declare.wants.iter().try_for_each(|want| super::super::acquire::check_ttl(draft, want.ttl))
}

/// Whether there is enough of everything for all of this. `again` is a wait for the very same, which is over with it.
fn check_means(draft: &Draft<'_>, declare: &Declare, again: Option<Ticket>) -> Result<(), Refusal> {
    if !draft.has_means_for(&declare.wants) {
        return Err(Refusal::Exhausted);
    }
    let Some(most) = draft.state.limits().leases_per_principal else { return Ok(()) };
    let has = |want: &&Want| draft.state.own_lease_on(&declare.agent, &want.resource).is_some();
    let missing = declare.wants.iter().filter(|want| !has(want)).count();
    let counted = again.map_or(0, |_| declare.wants.len());
    let fits = missing == 0
        || most
            .checked_add(counted)
            .and_then(|most| most.checked_sub(missing))
            .is_some_and(|room| !draft.uses_more_than(&declare.principal, room, usize::MAX));
    if fits { Ok(()) } else { Err(Refusal::QuotaExceeded { most }) }
}

fn is_same(one: &[Want], other: &[Want]) -> bool {
    let what = |wants: &[Want]| {
        let mut what: Vec<_> = wants.iter().map(|want| (want.resource.clone(), want.mode)).collect();
        what.sort_unstable();
        what
    };
    what(one) == what(other)
}

fn position(draft: &Draft<'_>, declare: &Declare, rank: &Rank) -> usize {
    let around = widest(&declare.wants).flat_map(|want| draft.pending_apart(&want.resource, want.mode));
    let mut older: Vec<_> =
        around.filter(|pending| pending.rank < *rank).map(|pending| pending.ticket).collect();
    older.sort_unstable();
    older.dedup();
    1 + older.len()
}
