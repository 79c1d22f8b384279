//! Revoke: the registrar ends one lease.

use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::draft::Draft;
use crate::kernel::event::Cause;
use crate::kernel::name::Principal;
use crate::kernel::value::Fence;
use crate::rules::names::InvalidInput;

pub(super) fn revoke(
    draft: &mut Draft<'_>,
    fence: Fence,
    cause: Cause,
    by: &Principal,
    detail: &str,
) -> Result<Answer, Refusal> {
    super::check_detail(detail)?;
    if cause == Cause::Transferred {
        let reason = "is for leases that go on under another number; use transfer, upgrade or downgrade";
        return Err(InvalidInput::new("cause", reason).into());
    }
    let lease = super::living(draft, fence, None)?;
    draft.revoke(lease, cause, by, detail);
    Ok(Answer::Ended { leases: vec![fence] })
}
