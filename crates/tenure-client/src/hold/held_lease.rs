//! What a program holds while it holds a lease.

use std::sync::atomic::{AtomicU64, Ordering};

use tenure_api::{Lease, Problem, Recall};
use tenure_core::kernel::Fence;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};

use crate::client::Secret;
use crate::clock::{boot_microseconds, sleep_until};
use crate::error::Error;

/// What the task that keeps the lease last knew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeldLeaseSnapshot {
    pub(super) leases: Vec<Lease>,
    pub(super) passports: Vec<Option<String>>,
    /// The local deadline.
    pub(super) deadline: u64,
    pub(super) waiters: Option<Recall>,
    pub(super) lost: Option<LeaseLost>,
}

/// What the program wants of that task.
pub(super) enum KeepAliveCommand {
    Release { reason: Option<String>, done: oneshot::Sender<Result<(), Error>> },
}

/// A lease that is held and kept alive. Dropping it gives the lease back, in the background.
///
/// Ask [`HeldLease::check`] right before each effect on what the lease protects, and hand its fence to whatever can refuse a
/// writer that is late: a process may be stopped between the question and the effect, and no client can prevent that.
pub struct HeldLease {
    state: watch::Receiver<HeldLeaseSnapshot>,
    commands: mpsc::UnboundedSender<KeepAliveCommand>,
    token: Secret,
    address: String,
    /// The deadline that was last told.
    reported_deadline: AtomicU64,
}

impl HeldLease {
    pub(super) fn new(
        state: watch::Receiver<HeldLeaseSnapshot>,
        commands: mpsc::UnboundedSender<KeepAliveCommand>,
        token: Secret,
        address: String,
    ) -> Self {
        let reported_deadline = AtomicU64::new(state.borrow().deadline);
        Self { state, commands, token, address, reported_deadline }
    }

    /// Grows with every grant. Of several leases, the first one's.
    pub fn fence(&self) -> Fence {
        self.state.borrow().fence()
    }

    /// The lease as the server last described it. Of several, the first.
    pub fn lease(&self) -> Lease {
        self.state.borrow().leases[0].clone()
    }

    /// All leases that this guard keeps, in the order asked for.
    pub fn leases(&self) -> Vec<Lease> {
        self.state.borrow().leases.clone()
    }

    /// Proves to others, without asking the server, that the lease was granted. Of several leases, the first one's.
    pub fn passport(&self) -> Option<String> {
        self.state.borrow().passports[0].clone()
    }

    /// Renews and releases the lease: whoever has it can act on it. To hand the lease on. Of several leases, the first
    /// one's.
    pub fn token(&self) -> Secret {
        self.token.clone()
    }

    /// The fence, if the lease is surely held at this instant. It asks the clock itself, so that a process that was
    /// stopped or a machine that slept finds out at once, even before any task has run.
    pub fn check(&self) -> Result<Fence, LeaseLost> {
        let state = self.state.borrow();
        match &state.lost {
            Some(lost) => Err(lost.clone()),
            None if boot_microseconds() < state.deadline => Ok(state.fence()),
            None => Err(LeaseLost::DeadlinePassed),
        }
    }

    /// The local deadline, in microseconds of CLOCK_BOOTTIME: when [`HeldLease::check`] says no, unless the lease is renewed
    /// before. Nobody else can hold the lease before it.
    pub fn deadline(&self) -> u64 {
        let until = self.state.borrow().deadline;
        self.reported_deadline.store(until, Ordering::Relaxed);
        until
    }

    /// Resolves when the local deadline is another than was last told, by this or by [`HeldLease::deadline`]: no
    /// change is missed between two calls.
    pub async fn wait_for_new_deadline(&self) -> u64 {
        let mut state = self.state.clone();
        let reported = self.reported_deadline.load(Ordering::Relaxed);
        let moved = state.wait_for(|state| state.deadline != reported).await.map(|state| state.deadline);
        match moved {
            Ok(until) => {
                self.reported_deadline.store(until, Ordering::Relaxed);
                until
            }
            // Nobody renews any more.
            Err(_) => std::future::pending().await,
        }
    }

    /// Resolves when the lease is lost, which is before anybody else can hold it.
    pub async fn wait_until_lost(&self) -> LeaseLost {
        let mut state = self.state.clone();
        loop {
            if let Err(lost) = self.check() {
                return lost;
            }
            let until = state.borrow_and_update().deadline;
            tokio::select! {
                changed = state.changed() => if changed.is_err() {
                    // Nobody renews any more.
                    sleep_until(until).await;
                },
                () = sleep_until(until) => {}
            }
        }
    }

    /// Resolves when somebody waits whom this lease keeps out: a holder that is done early need not keep them waiting.
    /// It is heard with a renewal, so up to a third of the lease's length later.
    pub async fn wait_until_recalled(&self) -> Recall {
        let mut state = self.state.clone();
        let recalled = state
            .wait_for(|state| state.waiters.is_some())
            .await
            .ok()
            .and_then(|state| state.waiters.clone());
        match recalled {
            Some(waiters) => waiters,
            None => std::future::pending().await,
        }
    }

    /// Gives the lease back, and says how that went. What is over already is no error. It is tried for some seconds;
    /// after that the lease runs out by itself.
    pub async fn release(self) -> Result<(), Error> {
        self.release_with_reason(None).await
    }

    /// The same with a reason: `COMPLETED`, `ABORTED` or `VOLUNTARY`.
    pub async fn release_with_reason(self, reason: Option<&str>) -> Result<(), Error> {
        let (done, released) = oneshot::channel();
        let command = KeepAliveCommand::Release { reason: reason.map(str::to_owned), done };
        // Whoever kept it may be gone with its runtime.
        let task_gone_error = || Error::OutcomeUnknown {
            address: self.address.clone(),
            source: "the runtime has ended".into(),
        };
        self.commands.send(command).map_err(|_| task_gone_error())?;
        released.await.unwrap_or_else(|_| Err(task_gone_error()))
    }
}

impl HeldLeaseSnapshot {
    pub(super) fn fence(&self) -> Fence {
        Fence(self.leases[0].fence)
    }
}

/// Why there is no guard.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HoldError {
    /// Somebody else has it, and the wait, if any, is over.
    #[error("{}", .0.detail)]
    Held(Box<Problem>),
    /// It could not be asked for, or was refused for another reason.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// The lease is not held any more: stop what it protects. It does not come back.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LeaseLost {
    /// No renewal got through in time, or this process did not run: from now on somebody else may hold it.
    #[error("the lease was not renewed in time; stop, and acquire it again")]
    DeadlinePassed,
    /// The server says that it is over.
    #[error("the lease is over ({end}); stop, and acquire it again")]
    Ended {
        /// How it ended, in the server's word: `REVOKED`, `EXPIRED`, …
        end: String,
    },
}
