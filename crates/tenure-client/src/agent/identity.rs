//! Who declares.

use std::sync::Arc;
use std::time::Duration;

use tenure_api::{AgentLeaseIds, AgentStateReport, AgentView, Manifest};
use tokio::sync::Mutex;

use super::intent::AgentIntent;
use super::manifest_acquisition::ManifestAcquisition;
use super::priority::AgentPriority;
use crate::client::Client;
use crate::error::Error;
use crate::hold::WaitLimit;
use crate::idempotency_key::IdempotencyKey;

/// How long leases live without a heartbeat, unless somebody says otherwise.
const DEFAULT_TTL: Duration = Duration::from_secs(60);
/// For how long to wait, unless somebody says otherwise.
const DEFAULT_WAIT: Duration = Duration::from_secs(60);
/// How much earlier than the server an agent ends its leases.
const DEFAULT_SKEW: Duration = Duration::from_millis(500);

/// An agent: declares what it is about to touch, and gets all of it or nothing. Copies are the same agent.
///
/// Its priority is the time of its first declaration. It keeps it as long as it holds or wants anything, so that with time it
/// becomes the oldest, and nobody can keep it out.
#[derive(Clone)]
pub struct Agent {
    pub(super) client: Client,
    pub(super) id: Arc<str>,
    pub(super) session: Arc<str>,
    pub(super) ttl: Duration,
    pub(super) wait: WaitLimit,
    pub(super) skew: Duration,
    /// Which of the agent's lives this is.
    pub(super) epoch: u64,
    pub(super) priority: AgentPriority,
    /// Declarations come one after the other.
    pub(super) declare_lock: Arc<Mutex<()>>,
}

impl Agent {
    /// An agent of this name, in a session of its own.
    pub fn new(client: &Client, id: impl Into<Arc<str>>) -> Self {
        Self {
            client: client.clone(),
            id: id.into(),
            session: IdempotencyKey::random().as_str().into(),
            ttl: DEFAULT_TTL,
            wait: WaitLimit::For(DEFAULT_WAIT),
            skew: DEFAULT_SKEW,
            epoch: 0,
            priority: AgentPriority::default(),
            declare_lock: Arc::default(),
        }
    }

    /// In which session, for people.
    #[must_use]
    pub fn session(mut self, session: impl Into<Arc<str>>) -> Self {
        self.session = session.into();
        self
    }

    /// How long its leases live without a heartbeat: 60 s, if nobody says so. The server cuts what is too long.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// For how long a declaration waits and comes back: 60 s, if nobody says so. [`ManifestAcquisition::wait`] says it for one.
    #[must_use]
    pub fn wait(mut self, wait: WaitLimit) -> Self {
        self.wait = wait;
        self
    }

    /// How much earlier than the server it ends its leases: 500 ms, if nobody says so. Never more than half a lease.
    #[must_use]
    pub fn skew(mut self, skew: Duration) -> Self {
        self.skew = skew;
        self
    }

    /// Its priority: the time in milliseconds at which its attempt began; smaller is older, and older is stronger.
    #[must_use]
    pub fn priority(mut self, milliseconds: u64) -> Self {
        self.priority = AgentPriority::explicit(milliseconds);
        self
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Says what it is about to touch, and waits until all of it is the agent's.
    ///
    /// Two claims of one agent should not name the same resource: it is given back with the first that ends.
    pub fn declare(&self, intents: impl IntoIterator<Item = AgentIntent>) -> ManifestAcquisition {
        ManifestAcquisition::new(self.clone(), intents.into_iter().collect())
    }

    /// Says what it is doing: `PLANNING`, `EXECUTING`, `VERIFYING`, …
    pub async fn report(&self, state: &str) -> Result<AgentView, Error> {
        let (session_id, state) = (self.session.to_string(), state.to_owned());
        self.client.report(&self.id, &AgentStateReport { session_id, state, digest: None }).await
    }

    /// It is done: it waits for nothing and holds nothing any more, and its next attempt is a new one.
    pub async fn complete(&self) -> Result<(), Error> {
        self.end("COMPLETED").await
    }

    /// It gives up: like [`Agent::complete`]. Whoever wants another priority does this first.
    pub async fn abort(&self) -> Result<(), Error> {
        self.end("ABORTED").await
    }

    async fn end(&self, state: &str) -> Result<(), Error> {
        self.report(state).await?;
        self.priority.reset();
        Ok(())
    }

    pub(super) fn manifest(&self, intents: &[AgentIntent], wait_timeout_ms: u64) -> Manifest {
        Manifest {
            session_id: self.session.to_string(),
            agent_id: self.id.to_string(),
            intents: intents.iter().map(AgentIntent::to_manifest_intent).collect(),
            ttl: Some(u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX)),
            priority_timestamp: Some(self.priority.get_or_init()),
            wait_timeout_ms: Some(wait_timeout_ms),
        }
    }

    pub(super) fn lease_ids(&self, lease_ids: Vec<String>) -> AgentLeaseIds {
        AgentLeaseIds { agent_id: self.id.to_string(), lease_ids }
    }
}
