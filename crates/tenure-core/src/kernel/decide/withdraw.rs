//! Withdraw: a waiter leaves the queue.

use crate::kernel::answer::{Answer, Refusal};
use crate::kernel::draft::Draft;
use crate::kernel::event::WaitEnd;
use crate::kernel::name::Principal;
use crate::kernel::value::Ticket;

/// A ticket that was served, timed out or withdrawn before is no mistake of the caller's.
pub(super) fn withdraw(
    draft: &mut Draft<'_>,
    ticket: Ticket,
    principal: &Principal,
    end: WaitEnd,
) -> Result<Answer, Refusal> {
    let state = draft.state;
    if ticket > state.last_ticket() {
        return Err(Refusal::NoSuchTicket);
    }
    let Some(waiting) = state.waiting(ticket) else { return Ok(Answer::Withdrawn { waited: false }) };
    if waiting.queued.principal != *principal {
        return Err(Refusal::NoSuchTicket);
    }
    let waited = draft.waits(waiting);
    draft.leave(waiting, if waited { end } else { WaitEnd::TimedOut });
    Ok(Answer::Withdrawn { waited })
}
