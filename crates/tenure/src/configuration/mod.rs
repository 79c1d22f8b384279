//! Flags over the environment over a file over defaults.
//!
//! A key is known by one name everywhere: `segment_size` in the table `[ledger]` of the file is
//! `TENURE_LEDGER_SEGMENT_SIZE` in the environment.

mod agents;
mod control;
mod file;
mod files;
mod folders;
mod gateway;
mod intents;
mod place;
mod pools;
mod reach;
mod secrets;
mod sources;
mod worker;

use std::num::NonZeroU64;
use std::path::PathBuf;

use tenure_control::gateway::RulesError;
use tenure_core::kernel::Span;
use tenure_ledger::embedded::{Options, Retention};
use tenure_registrar::shell::Routine;
use tenure_server::{
    AgentSettings, ControlSettings, EmptySecret, FileSettings, IntentSettings, InvalidDevice, PoolError,
    Pools,
};
use thiserror::Error;

use crate::worker::InvalidTemplate;

pub use self::folders::Folders;
pub use self::intents::api_leases;
pub use self::place::{Here, Place, variable};
pub use self::reach::{Listen, Reach};
pub use self::secrets::{NO_SECRET, intent_secrets};
pub use self::sources::{Flags, Sources};
pub use self::worker::WorkerConfiguration;

/// Every key that there is. Any other in a file is refused: a misspelt one must not be ignored.
const KEYS: &[&str] = &[
    "listen",
    "data",
    "control.device",
    "control.gateway.rules",
    "socket",
    "socket.path",
    "socket.users",
    "tls.certificate",
    "tls.key",
    "http.hosts",
    "http.connections",
    "http.idle_seconds",
    "ledger.witness",
    "ledger.segment_size",
    "ledger.reserve",
    "ledger.checkpoint_after",
    "ledger.retention_days",
    "ledger.retention_bytes",
    "control.ttl_ms",
    "control.heartbeat_interval_ms",
    "control.millis_at_start",
    "control.serial.path",
    "control.serial.baud",
    "control.encoder.path",
    "control.encoder.parameter",
    "control.encoder.step",
    "intents.api_leases",
    "intents.start_within_ms",
    "intents.lan_guard",
    "intents.lan_allowed",
    "intents.trusted_proxies",
    "intents.worker",
    "intents.tuners",
    "intents.ttl_ms",
    "intents.renew_every_ms",
    "intents.stop_grace_ms",
    "intents.logs",
    "intents.logs_kept",
    "intents.pipeline.command",
    "intents.pipeline.recording_command",
    "agents.ttl_ms",
    "agents.longest_ttl_ms",
    "agents.wait_ms",
    "agents.longest_wait_ms",
    "agents.backoff_ms",
    "agents.longest_backoff_ms",
    "agents.lease_time_ms",
    "agents.idle_ms",
    "files.retry_seconds",
    "files.idle_seconds",
    "files.mode",
    "files.shells",
    "files.audit",
    "files.stop_when_idle_minutes",
];

/// Those of them that are lists: in the environment, with commas between.
const LISTS: &[&str] = &["socket.users", "http.hosts", "intents.lan_allowed", "intents.trusted_proxies"];

/// Those of them that are a program with its arguments: in the environment, as JSON.
const COMMANDS: &[&str] = &["intents.pipeline.command", "intents.pipeline.recording_command"];

/// Tables with keys of the user's own choice; each may be a list.
const FREE_TABLES: &[&str] = &[pools::TABLE];

/// What the program was told to do.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// Where to listen on the network, how, and for whom on this machine.
    pub reach: Reach,
    /// Where the ledger is.
    pub data: PathBuf,
    /// How it is kept.
    pub ledger: Options,
    /// What is done beside its writer, and when.
    pub routine: Routine,
    /// Names for any one of several resources.
    pub pools: Pools,
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

/// Why a configuration cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigurationError {
    /// The file cannot be read.
    #[error("{} cannot be read; choose another with --config, or leave it out", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{} is not TOML: {reason}", path.display())]
    NotToml {
        /// Which file.
        path: PathBuf,
        /// Where, and why not.
        reason: String,
    },
    /// A key that does not exist.
    #[error("{} has the key `{key}`, which does not exist; there are: {}", path.display(), KEYS.join(", "))]
    UnknownKey {
        /// Which key.
        key: String,
        /// In which file.
        path: PathBuf,
    },
    /// A value that cannot be used.
    #[error("{origin} is {value:?}, which is not {expected}")]
    BadValue {
        /// Where it was said.
        origin: String,
        /// What was said.
        value: String,
        /// What should have been said.
        expected: &'static str,
    },
    /// A pool that cannot be.
    #[error("{origin} cannot be used")]
    Pool {
        /// Where it was said.
        origin: String,
        /// Why not.
        #[source]
        source: PoolError,
    },
    /// What does not say where a device is.
    #[error("{origin} {reason}")]
    Device {
        /// Where it was said.
        origin: String,
        /// Why not, and what would be right. It does not repeat what may be a password.
        reason: InvalidDevice,
    },
    /// The table of a device cannot be read.
    #[error("{origin} names the file {}, which cannot be read; write \"wled\", or the path of a table", path.display())]
    RulesUnreadable {
        /// Where it was said.
        origin: String,
        /// Which file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The table of a device has a line that says nothing.
    #[error("the table {} cannot be used: {reason}", path.display())]
    Rules {
        /// Which file.
        path: PathBuf,
        /// Which line, and why not.
        reason: RulesError,
    },
    /// A certificate without a key, or a key without a certificate.
    #[error("there is a `{given}` but no `{missing}`; say both, or neither")]
    Half {
        /// What was said.
        given: &'static str,
        /// What was not.
        missing: &'static str,
    },
    /// A secret under two names that is not the same under both.
    #[error("{first} and {second} are set and differ; leave one of them out")]
    TwoSecrets {
        /// The one name.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A secret that is none.
    #[error("{name} cannot be used")]
    Secret {
        /// Which variable.
        name: &'static str,
        /// Why not. It does not repeat the secret.
        #[source]
        source: EmptySecret,
    },
    /// Something about a device, and not which.
    #[error("there is a `{given}` but no `{missing}`; say where it is, or leave both out")]
    Nowhere {
        /// What was said.
        given: &'static str,
        /// What was not.
        missing: &'static str,
    },
    /// An input for the built-in light, though another device is behind the server.
    #[error(
        "`{given}` moves the built-in light, which nobody sees while `control.device` names another device; leave one of \
         them out, or say `none` for the path"
    )]
    InputOfNoDevice {
        /// Which input.
        given: &'static str,
    },
    /// A lease that would end before its owner is asked for the next heartbeat.
    #[error(
        "`control.heartbeat_interval_ms` is {interval} and `control.ttl_ms` is {ttl}: a lease would end before its next \
         heartbeat; choose an interval that is shorter, best a fifth"
    )]
    HeartbeatTooLate {
        /// How often.
        interval: u32,
        /// How long.
        ttl: u32,
    },
    /// A command of a pipeline that cannot be one.
    #[error("{origin} {reason}")]
    Template {
        /// Where it was said.
        origin: String,
        /// Why not.
        reason: InvalidTemplate,
    },
    /// Something about a worker that has nothing to start.
    #[error(
        "there is an `{given}` but no `intents.pipeline.command`; say what carries out a session, or leave both out"
    )]
    NoPipeline {
        /// What was said.
        given: &'static str,
    },
    /// A lease whose pipeline would be ended before it is renewed.
    #[error(
        "`intents.renew_every_ms` is {every}, `intents.stop_grace_ms` is {grace} and `intents.ttl_ms` is {ttl}: a pipeline \
         would be ended before its lease can be renewed; together, the first two must be at most three quarters of the third"
    )]
    RenewedTooLate {
        /// How often.
        every: u64,
        /// How long an end may take.
        grace: u64,
        /// How long a lease lasts.
        ttl: u64,
    },
    /// Neither a flag nor the environment says where anything belongs.
    #[error("neither XDG_STATE_HOME nor HOME says where {what} belongs; set one of them, or {remedy}")]
    NoFolder {
        /// What has no place.
        what: &'static str,
        /// What else can be done.
        remedy: &'static str,
    },
}

impl Configuration {
    /// Puts together what flags, environment and file say.
    pub fn new(sources: &Sources, folders: &Folders) -> Result<Self, ConfigurationError> {
        let reach = Reach::new(sources, folders)?;
        let data = Self::data(sources, folders)?;
        let (ledger, routine, pools) = (ledger(sources, folders)?, routine(sources)?, pools::pools(sources)?);
        let control = control::with_gateway(control::control(sources)?, gateway::gateway(sources)?)?;
        // What the API takes for a session lasts as long as what the worker takes.
        let lease_ttl_ms = worker::ttl_ms(sources)?;
        let intents = IntentSettings { lease_ttl_ms, ..intents::intents(sources)? };
        let agents = agents::agents(sources)?;
        let files = files::files(sources)?;
        let worker = worker::worker(sources, &data)?;
        Ok(Self { reach, data, ledger, routine, pools, control, intents, agents, files, worker })
    }

    /// Where the ledger is, for whoever only reads it and needs to know nothing else.
    pub fn data(sources: &Sources, folders: &Folders) -> Result<PathBuf, ConfigurationError> {
        match sources.get("data") {
            Some(value) => Ok(PathBuf::from(value.text)),
            None => Ok(folders.state("the ledger", "say --data")?.join("tenure")),
        }
    }
}

fn ledger(sources: &Sources, folders: &Folders) -> Result<Options, ConfigurationError> {
    let usual = Options::default();
    let bytes = |key, usual| Ok(sources.parse(key, "a number of bytes")?.unwrap_or(usual));
    let witness = match sources.get("ledger.witness") {
        Some(value) => PathBuf::from(value.text),
        // Not in the data directory, where a copy of that would bring its own witness along.
        None => folders.state("the witness", "say TENURE_LEDGER_WITNESS")?.join("tenure-witness"),
    };
    Ok(Options {
        segment_size: bytes("ledger.segment_size", usual.segment_size)?,
        reserve: bytes("ledger.reserve", usual.reserve)?,
        witness: Some(witness),
    })
}

fn routine(sources: &Sources) -> Result<Routine, ConfigurationError> {
    let usual = Routine::default();
    let days: Option<u64> = sources.parse("ledger.retention_days", "a number of days")?;
    let age = days.map_or(usual.retention.age, |days| Span::from_secs(days.saturating_mul(24 * 60 * 60)));
    let bytes = sources.parse("ledger.retention_bytes", "a number of bytes")?;
    let checkpoint_after = sources.parse("ledger.checkpoint_after", "a number of events, 1 at least")?;
    Ok(Routine {
        checkpoint_after: checkpoint_after.map_or(usual.checkpoint_after, NonZeroU64::get),
        retention: Retention { age, bytes: bytes.unwrap_or(usual.retention.bytes) },
    })
}

#[cfg(test)]
mod tests;
