//! Claim: a lease on a piece of work, with authority of its own.

use std::sync::Arc;

use crate::authority::{Authority, work_resource};
use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::command::{Acquire, Contention};
use crate::kernel::draft::Draft;
use crate::kernel::mode::Mode;
use crate::kernel::value::Fence;
use crate::kernel::want::Want;
use crate::kernel::work::ClaimWork;

/// An ordinary lease in all but what it says of its authority. Nobody waits for it: who comes second asks again.
pub(super) fn claim(draft: &mut Draft<'_>, claim: &ClaimWork) -> Result<Answer, Refusal> {
    super::super::check_may_hold(draft, &claim.holder, &claim.principal)?;
    super::super::acquire::acquire(draft, &acquire_of(claim)?, Some(&authority_of(claim, None)?))
}

pub(super) fn acquire_of(claim: &ClaimWork) -> Result<Acquire, Refusal> {
    let resource = work_resource(&claim.work_id)?;
    let want = Want::new(resource, Mode::Exclusive, claim.ttl, claim.nonce).labelled(claim.labels.clone());
    Ok(Acquire {
        principal: claim.principal.clone(),
        holder: claim.holder.clone(),
        wants: vec![want],
        contention: Contention::Refuse,
        key: claim.key,
    })
}

pub(super) fn authority_of(claim: &ClaimWork, parent: Option<Fence>) -> Result<Arc<Authority>, Refusal> {
    claim.budget.check()?;
    Ok(Arc::new(Authority { parent, scope: claim.scope.clone(), budget: claim.budget }))
}
