//! Release: what an agent does not need any more.

use std::collections::BTreeSet;

use crate::kernel::agent::AgentAnswer;
use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::name::{Holder, Principal};
use crate::kernel::value::Fence;
use crate::lease::ReleaseReason;

/// What is over already counts as released, and appends nothing.
pub(super) fn release(
    draft: &mut Draft<'_>,
    agent: &Holder,
    principal: &Principal,
    leases: &[Fence],
) -> Result<AgentAnswer, Refusal> {
    super::check_own(draft, agent, principal)?;
    let state = draft.state;
    let (mut released, mut seen) = (Vec::with_capacity(leases.len()), BTreeSet::new());
    for fence in leases {
        let own = match state.find_lease(*fence) {
            Some(lease) => state.holder_name(lease.holder) == agent,
            None => state.ended(*fence).is_some_and(|ended| ended.holder == *agent),
        };
        if !own || !seen.insert(*fence) {
            continue;
        }
        released.push(*fence);
        if let Some(lease) = state.find_lease(*fence).filter(|lease| draft.lives(lease)) {
            draft.release(lease, ReleaseReason::Completed);
        }
    }
    Ok(AgentAnswer::Released(released))
}
