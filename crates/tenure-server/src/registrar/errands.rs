//! What must be done though nobody waits for it: what could not be delivered is taken back.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::kernel::{Answer, Cause, Command, Fence, Principal, Refusal, Ticket, WaitEnd};
use tenure_registrar::Reply;
use tenure_registrar::shell::Handle;
use tokio::runtime;
use tokio::sync::watch;
use tokio::time::sleep;

/// How long to let the writer be that has no room, or rests because its disk failed.
const REST: Duration = Duration::from_millis(50);

/// Runs errands, from any thread. It can be cloned and shared.
#[derive(Clone)]
pub(super) struct Errands(Arc<Means>);

struct Means {
    handle: Handle,
    runtime: runtime::Handle,
    ended: watch::Receiver<bool>,
}

impl Errands {
    pub(super) fn new(handle: Handle, runtime: runtime::Handle, ended: watch::Receiver<bool>) -> Self {
        Self(Arc::new(Means { handle, runtime, ended }))
    }

    /// Sees to it that this is done. A writer that cannot take it now is asked again, until it does or has ended.
    pub(super) fn run(&self, command: Command) {
        let (errands, again) = (self.clone(), command.clone());
        self.0.handle.ask(command, move |response| {
            if was_not_heard(&response.reply) && !*errands.0.ended.borrow() {
                let runtime = errands.0.runtime.clone();
                runtime.spawn(async move {
                    sleep(REST).await;
                    errands.run(again);
                });
            }
        });
    }
}

/// Whether nothing happened for a reason that may pass.
fn was_not_heard(reply: &Reply) -> bool {
    match reply {
        Reply::Busy | Reply::Unavailable => true,
        Reply::Answered { answer: Answer::Refused(refusal), .. } => *refusal == Refusal::NoSpace,
        _ => false,
    }
}

/// What somebody was given and was not told of yet. Dropped, wherever that is, it is taken back: nobody will ever
/// use it, and others wait.
pub(crate) struct Undelivered(Option<Errand>);

struct Errand {
    errands: Errands,
    principal: Principal,
    what: What,
}

enum What {
    Leases(Vec<Fence>),
    Place(Ticket),
}

impl Undelivered {
    /// Nothing that would have to be taken back.
    pub(super) fn nothing() -> Self {
        Self(None)
    }

    /// It was delivered, or it is gone: nothing is taken back.
    pub(crate) fn settle(&mut self) {
        self.0 = None;
    }
}

impl Drop for Undelivered {
    fn drop(&mut self) {
        let Some(Errand { errands, principal, what }) = self.0.take() else { return };
        match what {
            What::Place(ticket) => {
                errands.run(Command::Withdraw { ticket, principal, end: WaitEnd::Gone });
            }
            // Not a release: the holder never learned of the lease, so it cannot have given it back.
            What::Leases(leases) => leases.into_iter().for_each(|lease| {
                let (by, detail) = (principal.clone(), Arc::from("the grant could not be delivered"));
                errands.run(Command::Revoke { lease, cause: Cause::Disconnected, by, detail });
            }),
        }
    }
}

/// For whom something is kept until it is delivered.
#[derive(Clone)]
pub(super) struct Recipient {
    pub(super) errands: Errands,
    pub(super) principal: Principal,
    /// Whether the same request finds again what it was given: then nothing is taken back.
    pub(super) has_key: bool,
}

impl Recipient {
    pub(super) fn leases(&self, leases: &[Fence]) -> Undelivered {
        self.undelivered(What::Leases(leases.to_vec()))
    }

    pub(super) fn place(&self, ticket: Ticket) -> Undelivered {
        self.undelivered(What::Place(ticket))
    }

    fn undelivered(&self, what: What) -> Undelivered {
        if self.has_key {
            return Undelivered::nothing();
        }
        let (errands, principal) = (self.errands.clone(), self.principal.clone());
        Undelivered(Some(Errand { errands, principal, what }))
    }
}
