//! Configuration: flags override the environment, which overrides the file, which overrides defaults.
//!
//! A key has one name everywhere: `segment_size` in the table `[ledger]` of the file is
//! `TENURE_LEDGER_SEGMENT_SIZE` in the environment.

mod control;
mod folders;
mod keys;
mod ledger_location;
mod network;
mod sources;

use std::error::Error;
use std::path::PathBuf;

use tenure_core::kernel::TickDuration;
use tenure_ledger::Retention;
use tenure_ledger::embedded::{EmbeddedStore, LedgerOptions};
use tenure_registrar::runtime::MaintenanceOptions;
use tenure_server::{AgentSettings, ControlSettings, FileSettings, IntentSettings, ResourcePools};

pub use self::control::{WorkerConfiguration, read_api_leases};
pub use self::folders::{Folders, NO_SECRET, intent_secrets};
pub use self::ledger_location::{LedgerLocation, LocalServerPaths, variable};
pub use self::network::{ListenAddress, NetworkSettings};
pub use self::sources::{Flags, MergedValues};

/// What the program was told to do.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// Where to listen on the network, how, and for whom on this machine.
    pub network: NetworkSettings,
    /// Where the ledger and the secrets are.
    pub data: PathBuf,
    pub ledger: EmbeddedStore,
    /// What is done beside its writer, and when.
    pub routine: MaintenanceOptions,
    /// Names for any one of several resources.
    pub pools: ResourcePools,
    /// The device, and who may move it.
    pub control: ControlSettings,
    /// What is done with intents.
    pub intents: IntentSettings,
    /// How long agents may have something, and wait for it.
    pub agents: AgentSettings,
    /// What coding agents may do to files at once.
    pub files: FileSettings,
    /// Who carries out sessions, and how.
    pub worker: Option<WorkerConfiguration>,
}

/// Why a configuration cannot be used: which key, where it was set, and what is allowed. It never repeats a secret.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ConfigurationError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ConfigurationError {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None }
    }

    fn because(message: impl Into<String>, source: impl Error + Send + Sync + 'static) -> Self {
        Self { message: message.into(), source: Some(Box::new(source)) }
    }

    /// One of two keys or variables that need each other.
    fn incomplete_pair(present: &str, missing: &str) -> Self {
        Self::new(format!("there is a `{present}` but no `{missing}`; say both, or neither"))
    }
}

impl Configuration {
    /// Puts together what flags, environment and file say.
    pub fn new(sources: &MergedValues, folders: &Folders) -> Result<Self, ConfigurationError> {
        let data = Self::data_directory(sources, folders)?;
        Ok(Self {
            network: NetworkSettings::new(sources, folders)?,
            ledger: EmbeddedStore { directory: data.clone(), options: ledger_options(sources, folders)? },
            routine: routine(sources)?,
            pools: pools(sources)?,
            control: control::read_control_settings(sources)?,
            intents: control::read_intent_settings(sources)?,
            agents: agents(sources)?,
            files: files(sources)?,
            worker: control::read_worker_configuration(sources, &data)?,
            data,
        })
    }

    /// Where the ledger is, for commands that only read it and need to know nothing else.
    pub fn data_directory(sources: &MergedValues, folders: &Folders) -> Result<PathBuf, ConfigurationError> {
        match sources.get("data") {
            Some(value) => Ok(value.path()),
            None => Ok(folders.state("the ledger", "say --data")?.join("tenure")),
        }
    }

    /// The ledger in a data directory, for commands that move or copy it as a whole.
    pub fn ledger_in(data: PathBuf) -> EmbeddedStore {
        EmbeddedStore::new(data)
    }
}

fn ledger_options(sources: &MergedValues, folders: &Folders) -> Result<LedgerOptions, ConfigurationError> {
    let default = LedgerOptions::default();
    let witness = match sources.get("ledger.witness") {
        Some(value) => value.path(),
        // Not in the data directory, where a copy of that would bring its own witness along.
        None => folders.state("the witness", "say TENURE_LEDGER_WITNESS")?.join("tenure-witness"),
    };
    Ok(LedgerOptions {
        segment_size: sources.number_or("ledger.segment_size", default.segment_size)?,
        reserve: sources.number("ledger.reserve")?,
        witness: Some(witness),
    })
}

fn routine(sources: &MergedValues) -> Result<MaintenanceOptions, ConfigurationError> {
    let default = MaintenanceOptions::default();
    let days: Option<u64> = sources.number("ledger.retention_days")?;
    let age = days.map(|days| TickDuration::from_secs(days.saturating_mul(24 * 60 * 60)));
    Ok(MaintenanceOptions {
        checkpoint_after: sources.number_or("ledger.checkpoint_after", default.checkpoint_after)?,
        retention: Retention {
            age: age.unwrap_or(default.retention.age),
            bytes: sources.number_or("ledger.retention_bytes", default.retention.bytes)?,
        },
    })
}

/// `[pools] tuner = 4` is `tuner:0` to `tuner:3`, `door = ["front", "back"]` is `door:front` and `door:back`.
fn pools(sources: &MergedValues) -> Result<ResourcePools, ConfigurationError> {
    let mut pools = ResourcePools::default();
    for (name, value) in sources.pools() {
        let text = value.text.to_string_lossy();
        let names: Vec<String> = match text.parse::<usize>() {
            Ok(members) => (0..members.min(tenure_server::MAX_MEMBERS + 1)).map(|n| n.to_string()).collect(),
            Err(_) => text.split(',').map(|name| name.trim().to_owned()).collect(),
        };
        let added = pools.add(name, names.iter().map(String::as_str));
        let rejected = |error| ConfigurationError::because(format!("{} cannot be used", value.origin), error);
        added.map_err(rejected)?;
    }
    Ok(pools)
}

fn agents(sources: &MergedValues) -> Result<AgentSettings, ConfigurationError> {
    let default = AgentSettings::default();
    Ok(AgentSettings {
        ttl_ms: sources.number_or("agents.ttl_ms", default.ttl_ms)?,
        max_ttl_ms: sources.number_or("agents.longest_ttl_ms", default.max_ttl_ms)?,
        wait_ms: sources.number_or("agents.wait_ms", default.wait_ms)?,
        max_wait_ms: sources.number_or("agents.longest_wait_ms", default.max_wait_ms)?,
        backoff_ms: sources.number_or("agents.backoff_ms", default.backoff_ms)?,
        max_backoff_ms: sources.number_or("agents.longest_backoff_ms", default.max_backoff_ms)?,
        lease_time_ms: sources.number("agents.lease_time_ms")?,
        idle_ms: sources.number("agents.idle_ms")?,
    })
}

fn files(sources: &MergedValues) -> Result<FileSettings, ConfigurationError> {
    let default = FileSettings::default();
    let ms = |key, unit_ms: u64| Ok(sources.number(key)?.map(|number: u64| number * unit_ms));
    Ok(FileSettings {
        retry_ms: ms("files.retry_seconds", 1_000)?.unwrap_or(default.retry_ms),
        idle_ms: ms("files.idle_seconds", 1_000)?.unwrap_or(default.idle_ms),
        warn_only: sources.value_is("files.mode", "warn")?.unwrap_or(default.warn_only),
        guarded_shells: sources.value_is("files.shells", "guarded")?.unwrap_or(default.guarded_shells),
        audit: sources.parse("files.audit")?.unwrap_or(default.audit),
        stop_when_idle_ms: ms("files.stop_when_idle_minutes", 60_000)?.or(default.stop_when_idle_ms),
    })
}

#[cfg(test)]
mod tests;
