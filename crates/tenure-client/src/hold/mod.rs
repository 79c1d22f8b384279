//! Holds a lease: waits for it, keeps it alive, releases it.
//!
//! ```text
//! held_lease      `HeldLease`: what a program holds
//! keepalive_task  a task for each lease: sends what `KeepAlive` requests, and feeds it the responses
//! requests        each of those requests, and what its response means to `KeepAlive`
//! queue_position  position in the queue, for display; withdraws an abandoned wait
//! ```

mod held_lease;
mod keepalive_task;
mod queue_position;
mod requests;

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use held_lease::{HeldLease, HoldError, LeaseLost};
use keepalive_task::KeepAliveSource;
pub use queue_position::QueuePosition;
use tenure_api::{AcquireRequest, LeaseGrant};
use tokio::sync::oneshot;

use crate::calls::{acquire_all_request, acquire_request};
use crate::client::{Client, IdempotencyKey};
use crate::error::Error;
use crate::http::ApiRequest;

/// For how long to wait for a lease that somebody else holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitLimit {
    /// Not at all.
    #[default]
    No,
    /// For this long.
    For(Duration),
    /// As long as it takes.
    Forever,
}

/// A lease that will be held: `.await` it. Dropping it before it is done leaves the queue, and gives back what came
/// meanwhile; [`Client::drain`] waits until that is done.
#[must_use = "nothing is asked for before it is awaited"]
pub struct HoldRequest {
    client: Client,
    source: KeepAliveSource,
    wait: WaitLimit,
    on_queue: Option<QueueCallback>,
}

type QueueCallback = Box<dyn FnMut(QueuePosition) + Send>;

/// What is asked for, always in the same words: the server finds a place in the queue again by the key *and* the body.
struct LeaseRequest {
    leases: Vec<AcquireRequest>,
    is_batch: bool,
    key: IdempotencyKey,
}

/// The longest wait that a server takes. Whoever waits for longer asks again after it, and loses its place once a day.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

impl Client {
    /// Waits for a lease and keeps it alive, in a task of its own. The request's `wait_ms` is not used:
    /// [`HoldRequest::wait`] says how long to wait.
    pub fn hold(&self, request: AcquireRequest) -> HoldRequest {
        self.hold_request(KeepAliveSource::Request { leases: vec![request], is_batch: false })
    }

    /// The same for several leases of one holder: all of them, or none. One guard keeps them all, and all are lost
    /// when one is.
    pub fn hold_all(&self, requests: Vec<AcquireRequest>) -> HoldRequest {
        self.hold_request(KeepAliveSource::Request { leases: requests, is_batch: true })
    }

    /// Keeps a lease alive that came in another way: handed over, upgraded, acquired by hand. `sent` is what
    /// [`boot_microseconds`](crate::boot_microseconds) said *before* the request was sent that it was the answer to.
    pub fn keep_alive(&self, granted: LeaseGrant, sent: u64) -> HoldRequest {
        self.hold_request(KeepAliveSource::Granted { granted: Box::new(granted), sent })
    }

    fn hold_request(&self, begin: KeepAliveSource) -> HoldRequest {
        HoldRequest { client: self.clone(), source: begin, wait: WaitLimit::No, on_queue: None }
    }
}

impl HoldRequest {
    /// For how long to wait. Not at all, if nobody says so.
    pub fn wait(mut self, wait: WaitLimit) -> Self {
        self.wait = wait;
        self
    }

    /// Is called now and then while it waits. It needs the scope `leases:read`; without it, it is not called.
    pub fn on_queue(mut self, callback: impl FnMut(QueuePosition) + Send + 'static) -> Self {
        self.on_queue = Some(Box::new(callback));
        self
    }

    async fn run(self) -> Result<HeldLease, HoldError> {
        let (reply, answered) = oneshot::channel();
        let address = self.client.address();
        keepalive_task::start(self.client, self.source, self.wait, self.on_queue, reply);
        // The runtime ended under us: there is nobody left to ask.
        let ended = || Error::OutcomeUnknown { address, source: "the runtime is ending".into() };
        answered.await.unwrap_or_else(|_| Err(ended().into()))
    }
}

impl IntoFuture for HoldRequest {
    type Output = Result<HeldLease, HoldError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl WaitLimit {
    /// What goes into every request.
    pub(crate) fn milliseconds(self) -> u64 {
        let wait = match self {
            WaitLimit::No => return 0,
            WaitLimit::For(wait) => wait.clamp(Duration::from_millis(1), MAX_WAIT),
            WaitLimit::Forever => MAX_WAIT,
        };
        u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
    }
}

impl LeaseRequest {
    fn new(mut wants: Vec<AcquireRequest>, is_batch: bool, wait: WaitLimit) -> Arc<Self> {
        wants.iter_mut().for_each(|lease| lease.wait_ms = wait.milliseconds());
        Arc::new(Self { leases: wants, is_batch, key: IdempotencyKey::random() })
    }

    /// The same wish as a request of its own: what came of the first one is over.
    fn with_new_key(&self) -> Arc<Self> {
        let Self { leases: wants, is_batch, .. } = self;
        Arc::new(Self { leases: wants.clone(), is_batch: *is_batch, key: IdempotencyKey::random() })
    }

    fn to_api_request(&self) -> ApiRequest {
        match &self.leases[..] {
            [only] if !self.is_batch => acquire_request(only, Some(&self.key)),
            wants => acquire_all_request(wants, Some(&self.key)),
        }
    }

    /// Whether it waits in a queue.
    fn has_wait(&self) -> bool {
        self.leases.iter().any(|lease| lease.wait_ms > 0)
    }
}
