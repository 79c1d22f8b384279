//! Commands that no request waits for, retried until the registrar takes them: revokes grants that were not delivered.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::kernel::{
    Command, CommandOutcome, Fence, Principal, Rejection, RevocationCause, Ticket, WaitEnd,
};
use tenure_registrar::Reply;
use tenure_registrar::runtime::Handle;
use tokio::runtime;
use tokio::sync::watch;
use tokio::time::sleep;

/// How long to let the writer be that has no room, or rests because its disk failed.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Retries commands in the background, from any thread. It can be cloned and shared.
#[derive(Clone)]
pub(super) struct RetryQueue(Arc<RetryContext>);

struct RetryContext {
    handle: Handle,
    runtime: runtime::Handle,
    ended: watch::Receiver<bool>,
}

impl RetryQueue {
    pub(super) fn new(handle: Handle, runtime: runtime::Handle, ended: watch::Receiver<bool>) -> Self {
        Self(Arc::new(RetryContext { handle, runtime, ended }))
    }

    /// Sees to it that this is done. A writer that cannot take it now is asked again, until it does or has ended.
    pub(super) fn submit(&self, command: Command) {
        let (retry_queue, again) = (self.clone(), command.clone());
        self.0.handle.submit(command, move |response| {
            if is_retryable(&response.reply) && !*retry_queue.0.ended.borrow() {
                let runtime = retry_queue.0.runtime.clone();
                runtime.spawn(async move {
                    sleep(RETRY_DELAY).await;
                    retry_queue.submit(again);
                });
            }
        });
    }
}

/// Whether nothing happened for a reason that may pass.
fn is_retryable(reply: &Reply) -> bool {
    match reply {
        Reply::Busy | Reply::Unavailable => true,
        Reply::Answered { answer: CommandOutcome::Rejected(rejection), .. } => {
            *rejection == Rejection::NoSpace
        }
        _ => false,
    }
}

/// What somebody was given and was not told of yet. Dropped, wherever that is, it is taken back: nobody will ever
/// use it, and others wait.
pub(crate) struct RevokeOnDrop(Option<PendingRevocation>);

struct PendingRevocation {
    retry_queue: RetryQueue,
    principal: Principal,
    target: RevokeTarget,
}

enum RevokeTarget {
    Leases(Vec<Fence>),
    Ticket(Ticket),
}

impl RevokeOnDrop {
    /// Nothing that would have to be taken back.
    pub(super) fn disarmed() -> Self {
        Self(None)
    }

    /// It was delivered, or it is gone: nothing is taken back.
    pub(crate) fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for RevokeOnDrop {
    fn drop(&mut self) {
        let Some(PendingRevocation { retry_queue, principal, target: what }) = self.0.take() else {
            return;
        };
        match what {
            RevokeTarget::Ticket(ticket) => {
                retry_queue.submit(Command::Withdraw { ticket, principal, end: WaitEnd::Gone });
            }
            // Not a release: the holder never learned of the lease, so it cannot have given it back.
            RevokeTarget::Leases(leases) => leases.into_iter().for_each(|lease| {
                let (by, detail) = (principal.clone(), Arc::from("the grant could not be delivered"));
                retry_queue.submit(Command::Revoke {
                    lease,
                    cause: RevocationCause::Disconnected,
                    by,
                    detail,
                });
            }),
        }
    }
}

/// For whom something is kept until it is delivered.
#[derive(Clone)]
pub(super) struct GrantRecipient {
    pub(super) retry_queue: RetryQueue,
    pub(super) principal: Principal,
    /// Whether the same request finds again what it was given: then nothing is taken back.
    pub(super) has_key: bool,
}

impl GrantRecipient {
    pub(super) fn revoke_leases_on_drop(&self, leases: &[Fence]) -> RevokeOnDrop {
        self.revoke_on_drop(RevokeTarget::Leases(leases.to_vec()))
    }

    pub(super) fn withdraw_ticket_on_drop(&self, ticket: Ticket) -> RevokeOnDrop {
        self.revoke_on_drop(RevokeTarget::Ticket(ticket))
    }

    fn revoke_on_drop(&self, what: RevokeTarget) -> RevokeOnDrop {
        if self.has_key {
            return RevokeOnDrop::disarmed();
        }
        let (retry_queue, principal) = (self.retry_queue.clone(), self.principal.clone());
        RevokeOnDrop(Some(PendingRevocation { retry_queue, principal, target: what }))
    }
}
