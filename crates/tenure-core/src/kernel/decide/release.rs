//! Release: its holder gives a lease back.

use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::command::Claim;
use crate::kernel::draft::Draft;
use crate::kernel::value::Fence;
use crate::lease::ReleaseReason;

/// Releasing what is over succeeds and appends nothing: the caller has what it wants.
pub(super) fn release(
    draft: &mut Draft<'_>,
    fence: Fence,
    claim: &Claim,
    reason: ReleaseReason,
) -> Result<Answer, Refusal> {
    let lease = match super::living(draft, fence, Some(claim)) {
        Ok(lease) => lease,
        Err(Refusal::Over { .. }) => return Ok(Answer::Released { lease: fence }),
        Err(refusal) => return Err(refusal),
    };
    draft.release(lease, reason);
    Ok(Answer::Released { lease: fence })
}
