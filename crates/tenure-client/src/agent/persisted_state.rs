//! What an agent remembers over a restart of its process.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tenure_api::{DigestIdentity, DigestRecovery, StateDigest};

use super::intent::AgentIntent;

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
