//! Force release: a person takes a file from whoever has it. Who did it, and why, is in the ledger.

use std::sync::Arc;

use crate::kernel::answer::Refusal;
use crate::kernel::draft::Draft;
use crate::kernel::event::Cause;
use crate::kernel::file::FileAnswer;
use crate::kernel::name::{Principal, Resource};

/// Only what sessions of coding agents have: another lease has a holder of its own, and its own way to be revoked.
pub(super) fn force_release(
    draft: &mut Draft<'_>,
    resources: &[Resource],
    by: &Principal,
    detail: &Arc<str>,
) -> Result<FileAnswer, Refusal> {
    super::super::check_detail(detail)?;
    super::check_count(resources.len())?;
    let (state, mut released) = (draft.state, Vec::new());
    for resource in resources {
        draft.settle(resource);
        let Some(lease) = draft.lease_on_file(resource) else { continue };
        if state.file_session(state.holder_name(lease.holder)).is_some() {
            draft.revoke(lease, Cause::Revoked, by, detail);
            released.push(resource.clone());
        }
    }
    Ok(FileAnswer::Released { resources: released, foreign: Vec::new() })
}
