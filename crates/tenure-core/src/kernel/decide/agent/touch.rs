//! Touch: what an agent touches, against what it has leases for.

use crate::kernel::agent::{AgentAnswer, AgentEvent};
use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::event::Event;
use crate::kernel::limits::{STRAYS_KEPT, TOUCHES_AT_ONCE};
use crate::kernel::mode::Mode;
use crate::kernel::name::{Holder, Principal, Resource};
use crate::kernel::value::{Fence, Span};
use crate::rules::names::InvalidInput;
use crate::rules::overlap::Reach;

/// What is within needs no record, unless it shows that a lease is used. What is beyond is told once in an attempt.
pub(super) fn touch(
    draft: &mut Draft<'_>,
    agent: &Holder,
    principal: &Principal,
    touched: &[(Resource, Mode)],
) -> Result<AgentAnswer, Refusal> {
    if touched.is_empty() || touched.len() > TOUCHES_AT_ONCE {
        let reason = format!("has to have from 1 to {TOUCHES_AT_ONCE} entries");
        return Err(InvalidInput::new("resources", reason).into());
    }
    super::check_own(draft, agent, principal)?;
    if draft.state.agent(agent).is_none() {
        return Err(Refusal::NoSuchAgent);
    }
    draft.check_has_room()?;
    draft.expire_all_of(agent);
    let living = draft.living_leases_of(agent);
    let (mut used, mut outside): (Vec<Fence>, Vec<(Resource, Mode)>) = (Vec::new(), Vec::new());
    for (resource, mode) in touched {
        let reach = Reach::of(resource.as_str());
        let within = |name: &Resource| Reach::of(name.as_str()).covers(reach);
        let covering = living
            .iter()
            .filter(|lease| lease.mode.covers(*mode) && within(draft.state.resource_name(lease.resource)));
        let before = used.len();
        used.extend(covering.map(|lease| lease.fence));
        if used.len() == before && !outside.iter().any(|(known, _)| known == resource) {
            outside.push((resource.clone(), *mode));
        }
    }
    note_use(draft, agent, used);
    note_strays(draft, agent, &outside);
    Ok(AgentAnswer::Touched { outside })
}

/// Not every touch is a record: an eighth of the time that a lease may lie idle is near enough.
fn note_use(draft: &mut Draft<'_>, agent: &Holder, mut used: Vec<Fence>) {
    let Some(idle) = draft.state.limits().idle else { return };
    let near = Span(idle.0 / 8);
    let now = draft.now;
    used.sort_unstable();
    used.dedup();
    used.retain(|fence| draft.state.touched_at(*fence).is_some_and(|at| now.since(at) >= near));
    if !used.is_empty() {
        let event = AgentEvent::Touched { agent: agent.clone(), at: now, leases: used };
        draft.push(Event::Agent(Box::new(event)));
    }
}

fn note_strays(draft: &mut Draft<'_>, agent: &Holder, outside: &[(Resource, Mode)]) {
    let known = draft.state.agent(agent).map(|agent| &agent.strayed[..]).unwrap_or_default();
    let room = STRAYS_KEPT.saturating_sub(known.len());
    let new = outside.iter().filter(|(resource, _)| !known.contains(resource)).take(room);
    let new: Vec<_> = new.cloned().collect();
    if !new.is_empty() {
        let event = AgentEvent::Strayed { agent: agent.clone(), at: draft.now, outside: new };
        draft.push(Event::Agent(Box::new(event)));
    }
}
