//! Who may send intents, and what carries out sessions: `[intents]` and `[intents.pipeline]`.

use std::path::Path;

use tenure_server::IntentSettings;

use super::sources::ConfigurationValue;
use super::{ConfigurationError, MergedValues};
use crate::worker::{CommandTemplate, CommandTemplateError, Settings};

const COMMAND: &str = "intents.pipeline.command";
const RECORDING_COMMAND: &str = "intents.pipeline.recording_command";
const DEFAULT_TTL_MS: u64 = 30_000;
const DEFAULT_GRACE_MS: u64 = 5_000;
const DEFAULT_LOGS: usize = 200;

/// The worker, where there is something that it could start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerConfiguration {
    /// What it needs to know.
    pub settings: Settings,
    /// Whether the server is to run it.
    pub is_in_server: bool,
}

/// What was configured for the API.
pub fn read_intent_settings(sources: &MergedValues) -> Result<IntentSettings, ConfigurationError> {
    let default = IntentSettings::default();
    Ok(IntentSettings {
        api_leases: read_api_leases(sources)?.unwrap_or(default.api_leases),
        start_within_ms: sources.number_or("intents.start_within_ms", default.start_within_ms)?,
        // The leases that the API takes for a session last as long as those that the worker takes.
        lease_ttl_ms: sources.number_or("intents.ttl_ms", DEFAULT_TTL_MS)?,
        lan_guard: sources.boolean("intents.lan_guard")?.unwrap_or(default.lan_guard),
        // An empty list counts as well, and lets no client in.
        lan_allowed: sources.list("intents.lan_allowed")?.unwrap_or(default.lan_allowed),
        trusted_proxies: sources.list("intents.trusted_proxies")?.unwrap_or(default.trusted_proxies),
    })
}

/// Whether the API takes leases, if it was configured. It is read again while the server runs.
pub fn read_api_leases(sources: &MergedValues) -> Result<Option<bool>, ConfigurationError> {
    sources.boolean("intents.api_leases")
}

/// What was configured for the worker. Without a command there is no worker.
pub fn read_worker_configuration(
    sources: &MergedValues,
    data: &Path,
) -> Result<Option<WorkerConfiguration>, ConfigurationError> {
    let is_in_server = sources.boolean("intents.worker")?;
    let command = template(sources, COMMAND)?;
    let recording_command = template(sources, RECORDING_COMMAND)?;
    let tuners = sources.number_or("intents.tuners", 0)?;
    let ttl_ms = sources.number_or("intents.ttl_ms", DEFAULT_TTL_MS)?;
    let renew_every_ms = sources.number_or("intents.renew_every_ms", ttl_ms / 3)?;
    let stop_grace_ms = sources.number_or("intents.stop_grace_ms", DEFAULT_GRACE_MS.min(ttl_ms / 4))?;
    // The rest is for a server that is slow, and for processes that take their time to end.
    if renew_every_ms.saturating_add(stop_grace_ms) > ttl_ms / 4 * 3 {
        return Err(ConfigurationError::new(format!(
            "`intents.renew_every_ms` is {renew_every_ms}, `intents.stop_grace_ms` is {stop_grace_ms} and `intents.ttl_ms` \
             is {ttl_ms}: a pipeline would be ended before its lease can be renewed; together, the first two must be at \
             most three quarters of the third"
        )));
    }
    let logs = sources.get("intents.logs").map_or_else(|| data.join("sessions"), ConfigurationValue::path);
    let logs_kept = sources.number_or("intents.logs_kept", DEFAULT_LOGS)?;
    let Some(command) = command else {
        // A worker would wait for sessions that it cannot start.
        let recording = recording_command.map(|_| RECORDING_COMMAND);
        let present =
            is_in_server.filter(|is_in_server| *is_in_server).map(|_| "intents.worker").or(recording);
        return present.map_or(Ok(None), |key| {
            Err(ConfigurationError::new(format!(
                "there is an `{key}` but no `{COMMAND}`; say what carries out a session, or leave both out"
            )))
        });
    };
    let settings = Settings {
        tuners,
        ttl_ms,
        renew_every_ms,
        stop_grace_ms,
        logs,
        logs_kept,
        command,
        recording_command,
    };
    Ok(Some(WorkerConfiguration { settings, is_in_server: is_in_server.unwrap_or(true) }))
}

/// A program with its arguments. An error does not repeat it, since it may have a password in it.
fn template(sources: &MergedValues, key: &str) -> Result<Option<CommandTemplate>, ConfigurationError> {
    let Some(ConfigurationValue { text, origin }) = sources.get(key) else { return Ok(None) };
    let arguments = serde_json::from_str::<Vec<String>>(&text.to_string_lossy());
    let template = arguments
        .map_err(|_| CommandTemplateError::NotAList)
        .and_then(|arguments| CommandTemplate::parse(&arguments));
    template.map(Some).map_err(|reason| ConfigurationError::new(format!("{origin} {reason}")))
}
