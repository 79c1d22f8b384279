//! Identity and priority of an agent.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use tenure_api::{AgentLeaseIds, AgentStateReport, AgentView, Manifest, Problem};

use super::manifest_acquisition::{AgentIntent, ManifestAcquisition};
use crate::client::{Client, IdempotencyKey};
use crate::error::Error;
use crate::hold::WaitLimit;

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
    pub(super) declare_lock: Arc<tokio::sync::Mutex<()>>,
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

/// What an agent is at, shared by all its copies.
#[derive(Clone, Default)]
pub(super) struct AgentPriority(Arc<Mutex<PriorityState>>);

#[derive(Default)]
struct PriorityState {
    priority: Option<u64>,
    /// The program said it, and nobody else changes it.
    is_explicit: bool,
    /// How many declarations and claims rest on it.
    guards: usize,
}

/// The agent's priority stays as it is while this lives.
pub(super) struct PriorityGuard(AgentPriority);

impl AgentPriority {
    pub(super) fn explicit(priority: u64) -> Self {
        Self(Arc::new(Mutex::new(PriorityState { priority: Some(priority), is_explicit: true, guards: 0 })))
    }

    /// What an agent remembers from before. It goes on with it.
    pub(super) fn restored(priority: u64) -> Self {
        Self(Arc::new(Mutex::new(PriorityState { priority: Some(priority), is_explicit: false, guards: 0 })))
    }

    pub(super) fn pin(&self) -> PriorityGuard {
        self.0.lock().guards += 1;
        PriorityGuard(self.clone())
    }

    /// The priority of the attempt, which begins now if there is none.
    pub(super) fn get_or_init(&self) -> u64 {
        *self.0.lock().priority.get_or_insert_with(unix_milliseconds)
    }

    /// Whether nothing else rests on it.
    pub(super) fn has_single_guard(&self) -> bool {
        self.0.lock().guards <= 1
    }

    /// The server knows another priority of this agent: an attempt that is not quite over, or a clock that went back.
    /// Whether to go on with that one.
    pub(super) fn adopt(&self, problem: &Problem) -> bool {
        let mut age = self.0.lock();
        match problem.priority_timestamp {
            Some(has) if !age.is_explicit && age.priority != Some(has) => {
                age.priority = Some(has);
                true
            }
            _ => false,
        }
    }

    /// The attempt is over: the next one is younger.
    pub(super) fn reset(&self) {
        let mut age = self.0.lock();
        (age.priority, age.is_explicit) = (None, false);
    }
}

impl Drop for PriorityGuard {
    fn drop(&mut self) {
        let mut age = self.0.0.lock();
        age.guards -= 1;
        if age.guards == 0 && !age.is_explicit {
            age.priority = None;
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "agents on several machines compare their ages; the server decides expiry by its own clock"
)]
fn unix_milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tenure_api::Code;

    use super::*;

    fn fixed(has: u64) -> Problem {
        let mut problem = Problem::new(Code::PriorityFixed, "");
        problem.priority_timestamp = Some(has);
        problem
    }

    #[test]
    fn priority_is_kept_until_the_last_guard_is_dropped() {
        let attempt = AgentPriority::restored(5);
        let (one, two) = (attempt.pin(), attempt.pin());
        assert!(!attempt.has_single_guard());
        drop(one);
        assert_eq!((attempt.get_or_init(), attempt.has_single_guard()), (5, true));
        drop(two);
        assert!(attempt.get_or_init() > 5, "the next attempt is younger");
    }

    #[test]
    fn server_priority_is_adopted_once_unless_set_explicitly() {
        let attempt = AgentPriority::restored(5);
        assert!(attempt.adopt(&fixed(9)) && !attempt.adopt(&fixed(9)));
        assert_eq!(attempt.get_or_init(), 9);
        let explicit = AgentPriority::explicit(5);
        assert!(!explicit.adopt(&fixed(9)));
        drop(explicit.pin());
        assert_eq!(explicit.get_or_init(), 5);
    }
}
