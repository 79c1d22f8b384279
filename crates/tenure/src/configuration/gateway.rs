//! Somebody else's device: `[control] device = "http://HOST"` says where, `[control.gateway] rules` what moves it.

use std::path::PathBuf;

use tenure_control::gateway::{Rules, wled};
use tenure_server::{GatewaySettings, Patience};

use super::sources::Value;
use super::{ConfigurationError, Sources};

const DEVICE: &str = "control.device";
const RULES: &str = "control.gateway.rules";

/// The device that was configured, if one was.
pub fn gateway(sources: &Sources) -> Result<Option<GatewaySettings>, ConfigurationError> {
    let rules = rules(sources)?;
    let Some(Value { text, origin }) = sources.get(DEVICE) else {
        return match rules {
            Some(_) => Err(ConfigurationError::Half { given: RULES, missing: DEVICE }),
            None => Ok(None),
        };
    };
    let device = text.to_string_lossy().parse();
    let device = device.map_err(|reason| ConfigurationError::Device { origin, reason })?;
    let rules = rules.unwrap_or_else(Rules::wled);
    Ok(Some(GatewaySettings { device, rules, patience: Patience::default() }))
}

fn rules(sources: &Sources) -> Result<Option<Rules>, ConfigurationError> {
    let Some(Value { text, origin }) = sources.get(RULES) else { return Ok(None) };
    if text == wled::NAME {
        return Ok(Some(Rules::wled()));
    }
    let path = PathBuf::from(text);
    let read = std::fs::read_to_string(&path);
    let table = read.map_err(|source| {
        let path = path.clone();
        ConfigurationError::RulesUnreadable { origin, path, source }
    })?;
    Rules::parse(&table).map(Some).map_err(|reason| ConfigurationError::Rules { path, reason })
}
