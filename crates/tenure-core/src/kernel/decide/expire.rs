//! Expire: the sweep. It makes notices prompt; it does not make grants safe.

use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::draft::Draft;

pub(super) fn expire(draft: &mut Draft<'_>, most: usize) -> Result<Answer, Refusal> {
    Ok(Answer::Swept { more: draft.sweep(most) })
}
