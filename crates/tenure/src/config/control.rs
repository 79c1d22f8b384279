//! The device and who may move it: `[control]`, `[control.serial]`, `[control.encoder]` and `[control.gateway]`.

use std::path::{Path, PathBuf};

use tenure_gateway::device_rules::Rules;
use tenure_gateway::{GatewaySettings, GatewayTimeouts, device_rules};
use tenure_server::{ControlSettings, IntentSettings, RotaryEncoderSettings, SerialSettings};
use tenure_worker::{CommandTemplate, CommandTemplateError, Settings};

use super::network::NONE;
use super::sources::ConfigurationValue;
use super::{ConfigurationError, MergedValues};

/// What was configured.
pub fn read_control_settings(sources: &MergedValues) -> Result<ControlSettings, ConfigurationError> {
    let default = ControlSettings::default();
    let ttl_ms = sources.number_or("control.ttl_ms", default.ttl_ms)?;
    // A fifth, as with the defaults of both.
    let interval = default.heartbeat_interval_ms.min(ttl_ms / 5);
    let heartbeat_interval_ms = sources.number_or("control.heartbeat_interval_ms", interval)?;
    if heartbeat_interval_ms >= ttl_ms {
        return Err(ConfigurationError::new(format!(
            "`control.heartbeat_interval_ms` is {heartbeat_interval_ms} and `control.ttl_ms` is {ttl_ms}: a lease would \
             end before its next heartbeat; choose an interval that is shorter, best a fifth"
        )));
    }
    let (serial, encoder, gateway) = (serial(sources)?, encoder(sources)?, gateway(sources)?);
    let input = serial.as_ref().map(|_| "control.serial.path");
    let input = input.or(encoder.as_ref().map(|_| "control.encoder.path"));
    // A foreign device has inputs of its own, which Tenure does not see.
    if let (Some(_), Some(present)) = (&gateway, input) {
        return Err(ConfigurationError::new(format!(
            "`{present}` moves the built-in light, which is not visible while `control.device` names another device; \
             leave one of them out, or say `none` for the path"
        )));
    }
    let millis_at_start = sources.number_or("control.millis_at_start", default.millis_at_start)?;
    Ok(ControlSettings { ttl_ms, heartbeat_interval_ms, millis_at_start, gateway, serial, encoder })
}

fn serial(sources: &MergedValues) -> Result<Option<SerialSettings>, ConfigurationError> {
    let baud = sources.number_or("control.serial.baud", SerialSettings::DEFAULT_BAUD)?;
    let path = path(sources, "control.serial.path", &["control.serial.baud"])?;
    Ok(path.map(|path| SerialSettings { path, baud }))
}

fn encoder(sources: &MergedValues) -> Result<Option<RotaryEncoderSettings>, ConfigurationError> {
    let limit = RotaryEncoderSettings::MAX_STEP;
    let step = sources.read_as("control.encoder.step", |text| {
        text.parse().ok().filter(|step| *step != 0 && (-limit..=limit).contains(step))
    })?;
    let parameter = sources.read_as("control.encoder.parameter", |name| {
        let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        (is_name && !name.is_empty()).then(|| name.to_owned())
    })?;
    let dependents = ["control.encoder.parameter", "control.encoder.step"];
    let path = path(sources, "control.encoder.path", &dependents)?;
    Ok(path.map(|path| RotaryEncoderSettings {
        path,
        parameter: parameter.unwrap_or_else(|| RotaryEncoderSettings::DEFAULT_PARAMETER.to_owned()),
        step: step.unwrap_or(RotaryEncoderSettings::DEFAULT_STEP),
    }))
}

/// The path of an input. The `dependents` need it, or `none` in its place.
fn path(
    sources: &MergedValues,
    key: &str,
    dependents: &[&str],
) -> Result<Option<PathBuf>, ConfigurationError> {
    sources.read_as(key, |text| (!text.is_empty()).then_some(()))?;
    match (sources.get(key), dependents.iter().find(|other| sources.get(other).is_some())) {
        (Some(value), _) => Ok((value.text != NONE).then(|| value.path())),
        (None, Some(present)) => Err(ConfigurationError::new(format!(
            "there is a `{present}` but no `{key}`; say where it is, or leave both out"
        ))),
        (None, None) => Ok(None),
    }
}

/// The foreign device that was configured, if one was.
fn gateway(sources: &MergedValues) -> Result<Option<GatewaySettings>, ConfigurationError> {
    let (device, rules) = (sources.get("control.device"), rules(sources)?);
    let Some(value) = device else {
        return match rules {
            Some(_) => Err(ConfigurationError::incomplete_pair("control.gateway.rules", "control.device")),
            None => Ok(None),
        };
    };
    // The reason does not repeat the value, which may have a password in it.
    let device = value.text.to_string_lossy().parse();
    let device = device.map_err(|reason| ConfigurationError::new(format!("{} {reason}", value.origin)))?;
    let rules = rules.unwrap_or_else(Rules::wled);
    Ok(Some(GatewaySettings { device, rules, timeouts: GatewayTimeouts::default() }))
}

fn rules(sources: &MergedValues) -> Result<Option<Rules>, ConfigurationError> {
    let Some(value) = sources.get("control.gateway.rules") else { return Ok(None) };
    if value.text == device_rules::NAME {
        return Ok(Some(Rules::wled()));
    }
    let path = value.path();
    let table = std::fs::read_to_string(&path).map_err(|error| {
        let (origin, path) = (&value.origin, path.display());
        let remedy = "write \"wled\", or the path of a table";
        ConfigurationError::because(
            format!("{origin} names the file {path}, which cannot be read; {remedy}"),
            error,
        )
    })?;
    Rules::parse(&table).map(Some).map_err(|reason| {
        ConfigurationError::new(format!("the table {} cannot be used: {reason}", path.display()))
    })
}

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
