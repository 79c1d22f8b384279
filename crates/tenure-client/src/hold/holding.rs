//! What is wanted, and for how long to wait.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tenure_api::{Acquire, Granted};
use tokio::sync::oneshot;

use super::driver::{self, Begin};
use super::failure::HoldError;
use super::guard::Guard;
use super::place::Place;
use crate::calls::{acquire, acquire_all};
use crate::client::Client;
use crate::connection::Call;
use crate::error::Error;
use crate::key::IdempotencyKey;

/// For how long to wait for a lease that somebody else holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// Not at all.
    #[default]
    No,
    /// For this long.
    For(Duration),
    /// As long as it takes.
    Forever,
}

/// A lease that will be held: `.await` it. Dropping it before it is done leaves the queue, and gives back what came
/// meanwhile; [`Client::settle`] waits until that is done.
#[must_use = "nothing is asked for before it is awaited"]
pub struct Holding {
    client: Client,
    begin: Begin,
    wait: Wait,
    on_queue: Option<OnQueue>,
}

pub(super) type OnQueue = Box<dyn FnMut(Place) + Send>;

/// What is asked for, always in the same words: the server finds a place in the queue again by the key *and* the body.
pub(super) struct Wish {
    pub(super) wants: Vec<Acquire>,
    pub(super) is_batch: bool,
    pub(super) key: IdempotencyKey,
}

/// The longest wait that a server takes. Whoever waits for longer asks again after it, and loses its place once a day.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

impl Client {
    /// Waits for a lease and keeps it alive, in a task of its own. The request's `wait_ms` is not used:
    /// [`Holding::wait`] says how long to wait.
    pub fn hold(&self, request: Acquire) -> Holding {
        self.holding(Begin::Wish { wants: vec![request], is_batch: false })
    }

    /// The same for several leases of one holder: all of them, or none. One guard keeps them all, and all are lost
    /// when one is.
    pub fn hold_all(&self, requests: Vec<Acquire>) -> Holding {
        self.holding(Begin::Wish { wants: requests, is_batch: true })
    }

    /// Keeps a lease alive that came in another way: handed over, upgraded, acquired by hand. `sent` is what
    /// [`boot_microseconds`](crate::boot_microseconds) said *before* the request was sent that it was the answer to.
    pub fn keep(&self, granted: Granted, sent: u64) -> Holding {
        self.holding(Begin::Granted { granted: Box::new(granted), sent })
    }

    fn holding(&self, begin: Begin) -> Holding {
        Holding { client: self.clone(), begin, wait: Wait::No, on_queue: None }
    }
}

impl Holding {
    /// For how long to wait. Not at all, if nobody says so.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = wait;
        self
    }

    /// Is called now and then while it waits. It needs the scope `leases:read`; without it, it is not called.
    pub fn on_queue(mut self, tell: impl FnMut(Place) + Send + 'static) -> Self {
        self.on_queue = Some(Box::new(tell));
        self
    }

    async fn run(self) -> Result<Guard, HoldError> {
        let (answer, answered) = oneshot::channel();
        let address = self.client.address();
        driver::start(self.client, self.begin, self.wait, self.on_queue, answer);
        // The runtime ended under us: there is nobody left to ask.
        let ended = || Error::Unknown { address, source: "the runtime is ending".into() };
        answered.await.unwrap_or_else(|_| Err(ended().into()))
    }
}

impl IntoFuture for Holding {
    type Output = Result<Guard, HoldError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl Wait {
    /// What goes into every request.
    pub(crate) fn milliseconds(self) -> u64 {
        let wait = match self {
            Wait::No => return 0,
            Wait::For(wait) => wait.clamp(Duration::from_millis(1), LONGEST_WAIT),
            Wait::Forever => LONGEST_WAIT,
        };
        u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Wish {
    pub(super) fn new(mut wants: Vec<Acquire>, is_batch: bool, wait: Wait) -> Arc<Self> {
        wants.iter_mut().for_each(|want| want.wait_ms = wait.milliseconds());
        Arc::new(Self { wants, is_batch, key: IdempotencyKey::random() })
    }

    /// The same wish as a request of its own: what came of the first one is over.
    pub(super) fn anew(&self) -> Arc<Self> {
        let Self { wants, is_batch, .. } = self;
        Arc::new(Self { wants: wants.clone(), is_batch: *is_batch, key: IdempotencyKey::random() })
    }

    pub(super) fn call(&self) -> Call {
        match &self.wants[..] {
            [only] if !self.is_batch => acquire(only, Some(&self.key)),
            wants => acquire_all(wants, Some(&self.key)),
        }
    }

    /// Whether it waits in a queue.
    pub(super) fn waits(&self) -> bool {
        self.wants.iter().any(|want| want.wait_ms > 0)
    }
}
