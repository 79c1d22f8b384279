//! An agent whose process restarts, or that was cut off: reconciles its leases, then declares again.

use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use serde::{Deserialize, Serialize};
use tenure_api::{AgentStateReport, DigestIdentity, DigestRecovery, StateDigest};

use super::DeclareError;
use super::held_manifest::HeldManifest;
use super::identity::{Agent, AgentPriority};
use super::manifest_acquisition::{AgentIntent, ManifestAcquisition};
use super::retry::{RetryDecision, RetrySchedule};
use crate::client::{Client, random_u64};
use crate::clock::{boot_microseconds, sleep_until};
use crate::error::Error;
use crate::hold::WaitLimit;

/// The most leases that can be asked about at once.
const MAX_RECONCILED_LEASES: usize = 1_024;

impl HeldManifest {
    /// What to remember, for a process that may end at any time. `phase` is what the agent is doing: `EXECUTING`, say.
    pub fn persisted_state(&self, phase: &str) -> PersistedAgentState {
        let agent = self.agent();
        PersistedAgentState {
            version: "1.0".into(),
            identity: AgentIdentity {
                agent_id: agent.id.to_string(),
                priority_timestamp: agent.priority.get_or_init(),
                epoch: agent.epoch.saturating_add(1),
            },
            recovery: AgentProgress {
                last_phase: phase.into(),
                pending_intents: self.intents().to_vec(),
                lease_ids: self.leases().iter().map(|lease| lease.id.clone()).collect(),
            },
            session_id: agent.session.to_string(),
            ttl_ms: milliseconds(agent.ttl),
            skew_ms: milliseconds(agent.skew),
        }
    }

    /// The process ends, and is started again: says so, which gives each lease 15 s more, and sends no heartbeat any more.
    /// Save what this returns, and exit with [`RESTART_EXIT_CODE`](super::RESTART_EXIT_CODE).
    pub async fn prepare_restart(self) -> Result<PersistedAgentState, Error> {
        let digest = self.persisted_state("DIE_RESTART");
        self.agent().report("DIE_RESTART").await?;
        self.detach().await;
        Ok(digest)
    }
}

impl Agent {
    /// Goes on where an earlier process of this agent was: shows what it remembers, asks what is true of its leases, and
    /// declares everything anew with the same priority. What is still the agent's stays so.
    ///
    /// `DIGEST_STALE` says that the memory is too old: begin with a new [`Agent`].
    pub async fn resume(client: &Client, digest: &PersistedAgentState) -> Result<HeldManifest, DeclareError> {
        let mut agent = Agent::new(client, digest.identity.agent_id.as_str())
            .session(digest.session_id.as_str())
            .ttl(Duration::from_millis(digest.ttl_ms))
            .skew(Duration::from_millis(digest.skew_ms));
        agent.priority = AgentPriority::restored(digest.identity.priority_timestamp);
        agent.epoch = digest.identity.epoch;
        let engaged = agent.priority.pin();
        let (session_id, state) = (digest.session_id.clone(), "VERIFYING".to_owned());
        let report = AgentStateReport { session_id, state, digest: Some(digest.to_state_digest()) };
        request_with_retry(&agent, agent.wait, || client.report(&agent.id, &report)).await?;
        let declaring = ManifestAcquisition::new(agent.clone(), digest.recovery.pending_intents.clone())
            .with_priority_guard(engaged);
        reacquire(&agent, &digest.recovery.lease_ids, declaring, agent.wait).await
    }
}

/// What the server says of the leases counts, whatever the agent remembers.
pub(super) async fn reacquire(
    agent: &Agent,
    remembered: &[String],
    declaring: ManifestAcquisition,
    wait: WaitLimit,
) -> Result<HeldManifest, DeclareError> {
    let mut held = Vec::new();
    for some in remembered.chunks(MAX_RECONCILED_LEASES) {
        let lease_ids = agent.lease_ids(some.to_vec());
        let result = request_with_retry(agent, wait, || agent.client.reconcile(&lease_ids)).await?;
        held.extend(result.leases.into_iter().filter(|(_, lease)| lease.held).map(|(id, _)| id));
    }
    let mut claim = declaring.await?;
    claim.compare_leases_with(&held);
    Ok(claim)
}

/// Asks until there is an answer, for as long as the agent waits.
async fn request_with_retry<T, F: Future<Output = Result<T, Error>>>(
    agent: &Agent,
    wait: WaitLimit,
    ask: impl Fn() -> F,
) -> Result<T, Error> {
    let mut schedule =
        RetrySchedule::new(wait, milliseconds(agent.ttl).saturating_mul(1_000), boot_microseconds());
    loop {
        let error = match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        match schedule.next_retry(boot_microseconds(), random_u64()) {
            RetryDecision::RetryAt(at) if error.is_transient() => sleep_until(at).await,
            _ => return Err(error),
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// An agent that ends in order to be started again exits with this, so that whoever started it knows.
pub const RESTART_EXIT_CODE: u8 = 107;

/// What an agent remembers over a restart of its process. It is good for five minutes.
///
/// What it remembers is not what it holds: `Agent::resume` asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistedAgentState {
    /// `1.0`.
    pub version: String,
    /// Who it was.
    pub identity: AgentIdentity,
    /// Where it was.
    pub recovery: AgentProgress,
    /// In which session.
    pub session_id: String,
    /// How long its leases lived without a heartbeat.
    pub ttl_ms: u64,
    /// How much earlier than the server it ended them.
    pub skew_ms: u64,
}

/// Who an agent was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentIdentity {
    /// Its name.
    pub agent_id: String,
    /// The priority of its attempt, which goes on.
    pub priority_timestamp: u64,
    /// Which of its lives that was.
    pub epoch: u64,
}

/// Where an agent was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProgress {
    /// What it was doing.
    pub last_phase: String,
    /// What it had declared, and has to find out about.
    pub pending_intents: Vec<AgentIntent>,
    /// The leases that it had.
    pub lease_ids: Vec<String>,
}

impl PersistedAgentState {
    /// Writes it to a file, whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let beside = path.with_extension("new");
        fs::write(&beside, serde_json::to_vec_pretty(self)?)?;
        fs::rename(&beside, path)
    }

    /// Reads it from a file.
    pub fn load(path: impl AsRef<Path>) -> io::Result<Self> {
        let bytes = fs::read(path)?;
        serde_json::from_slice(&bytes).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let text = format!("this is no digest of an agent (line {line}, column {column}); begin anew");
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }

    /// As the server wants it.
    pub(super) fn to_state_digest(&self) -> StateDigest {
        StateDigest {
            version: self.version.clone(),
            identity: DigestIdentity {
                agent_id: self.identity.agent_id.clone(),
                priority_timestamp: self.identity.priority_timestamp,
                epoch: self.identity.epoch,
            },
            recovery: DigestRecovery {
                last_phase: self.recovery.last_phase.clone(),
                pending_intents: self
                    .recovery
                    .pending_intents
                    .iter()
                    .map(AgentIntent::to_manifest_intent)
                    .collect(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_round_trips_and_invalid_files_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.json");
        let identity = AgentIdentity { agent_id: "a".into(), priority_timestamp: 7, epoch: 2 };
        let pending_intents = vec![AgentIntent::mutates("FILE:a")];
        let recovery =
            AgentProgress { last_phase: "EXECUTING".into(), pending_intents, lease_ids: vec!["l-1".into()] };
        let version = "1.0".into();
        let digest = PersistedAgentState {
            version,
            identity,
            recovery,
            session_id: "s".into(),
            ttl_ms: 60_000,
            skew_ms: 500,
        };
        digest.save(&path).unwrap();
        assert_eq!(PersistedAgentState::load(&path).unwrap(), digest);
        fs::write(&path, "{\"token\":\"secret\"}").unwrap();
        let message = PersistedAgentState::load(&path).unwrap_err().to_string();
        assert!(message.contains("begin anew") && !message.contains("secret"), "{message}");
    }
}
