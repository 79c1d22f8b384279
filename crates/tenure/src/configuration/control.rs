//! The device and who may move it: `[control]`, `[control.serial]` and `[control.encoder]`.

use std::path::PathBuf;

use tenure_server::{ControlSettings, EncoderSettings, GatewaySettings, SerialSettings};

use super::reach::NONE;
use super::{ConfigurationError, Sources};

/// What was configured.
pub fn control(sources: &Sources) -> Result<ControlSettings, ConfigurationError> {
    let usual = ControlSettings::default();
    let ttl_ms = sources
        .parse_if("control.ttl_ms", "a number of milliseconds, from 1000 to 3600000", |ttl| {
            ControlSettings::TTL_MS.contains(ttl)
        })?
        .unwrap_or(usual.ttl_ms);
    let heartbeat_interval_ms = sources
        .parse_if("control.heartbeat_interval_ms", "a number of milliseconds, 10 at least", |interval| {
            *interval >= ControlSettings::LEAST_HEARTBEAT_INTERVAL_MS
        })?
        // A fifth, as with what is usual for both.
        .unwrap_or(usual.heartbeat_interval_ms.min(ttl_ms / 5));
    if heartbeat_interval_ms >= ttl_ms {
        return Err(ConfigurationError::HeartbeatTooLate { interval: heartbeat_interval_ms, ttl: ttl_ms });
    }
    let millis_at_start = sources.parse("control.millis_at_start", "a number from 0 to 4294967295")?;
    Ok(ControlSettings {
        ttl_ms,
        heartbeat_interval_ms,
        millis_at_start: millis_at_start.unwrap_or(usual.millis_at_start),
        serial: serial(sources)?,
        encoder: encoder(sources)?,
        ..usual
    })
}

/// The same, in front of somebody else's device if there is one. That has inputs of its own, which Tenure does not see.
pub fn with_gateway(
    control: ControlSettings,
    gateway: Option<GatewaySettings>,
) -> Result<ControlSettings, ConfigurationError> {
    let serial = control.serial.as_ref().map(|_| "control.serial.path");
    let input = serial.or(control.encoder.as_ref().map(|_| "control.encoder.path"));
    match (&gateway, input) {
        (Some(_), Some(given)) => Err(ConfigurationError::InputOfNoDevice { given }),
        _ => Ok(ControlSettings { gateway, ..control }),
    }
}

fn serial(sources: &Sources) -> Result<Option<SerialSettings>, ConfigurationError> {
    let expected = "a speed in bits per second, such as 115200";
    let baud =
        sources.parse_if("control.serial.baud", expected, |baud| SerialSettings::BAUD.contains(baud))?;
    let path = path(sources, "control.serial.path", &["control.serial.baud"])?;
    Ok(path.map(|path| SerialSettings { path, baud: baud.unwrap_or(SerialSettings::USUAL_BAUD) }))
}

fn encoder(sources: &Sources) -> Result<Option<EncoderSettings>, ConfigurationError> {
    let expected = "a number from -255 to 255, but not 0";
    let fits = |step: &i32| *step != 0 && step.unsigned_abs() <= EncoderSettings::LARGEST_STEP.unsigned_abs();
    let step = sources.parse_if("control.encoder.step", expected, fits)?;
    let expected = "a parameter of the device, such as brightness";
    let parameter = sources.parse_if("control.encoder.parameter", expected, |name: &String| is_name(name))?;
    let others = ["control.encoder.parameter", "control.encoder.step"];
    let path = path(sources, "control.encoder.path", &others)?;
    Ok(path.map(|path| EncoderSettings {
        path,
        parameter: parameter.unwrap_or_else(|| EncoderSettings::USUAL_PARAMETER.to_owned()),
        step: step.unwrap_or(EncoderSettings::USUAL_STEP),
    }))
}

/// Where a device is. Whoever says anything else about it must say this, or that there is none.
fn path(
    sources: &Sources,
    key: &'static str,
    others: &[&'static str],
) -> Result<Option<PathBuf>, ConfigurationError> {
    match sources.get(key) {
        Some(value) if value.text == NONE => Ok(None),
        Some(value) if value.text.is_empty() => Err(ConfigurationError::BadValue {
            origin: value.origin,
            value: String::new(),
            expected: "the path of a device, or `none`",
        }),
        Some(value) => Ok(Some(PathBuf::from(value.text))),
        None => match others.iter().find(|other| sources.get(other).is_some()) {
            Some(given) => Err(ConfigurationError::Nowhere { given, missing: key }),
            None => Ok(None),
        },
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}
