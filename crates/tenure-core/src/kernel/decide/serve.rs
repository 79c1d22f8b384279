//! Serve: whose turn came while nothing could be granted.

use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::draft::Draft;

pub(super) fn serve(draft: &mut Draft<'_>, most: usize) -> Result<Answer, Refusal> {
    draft.check_may_grant()?;
    Ok(Answer::Swept { more: draft.serve_oldest(most) })
}
