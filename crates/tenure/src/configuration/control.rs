//! The device and who may move it: `[control]`, `[control.serial]`, `[control.encoder]` and `[control.gateway]`.

use std::path::PathBuf;

use tenure_control::gateway::{Rules, wled};
use tenure_server::{
    ControlSettings, GatewaySettings, GatewayTimeouts, RotaryEncoderSettings, SerialSettings,
};

use super::network::NONE;
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
    if value.text == wled::NAME {
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
