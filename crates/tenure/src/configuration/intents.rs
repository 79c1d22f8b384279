//! Who may send intents, and what is done with them first: `[intents]`.

use tenure_server::{IntentSettings, Network};

use super::{ConfigurationError, Sources};

/// The key that is read again while the server runs.
const API_LEASES: &str = "intents.api_leases";

/// What was configured.
pub fn intents(sources: &Sources) -> Result<IntentSettings, ConfigurationError> {
    let usual = IntentSettings::default();
    let start_within_ms = sources
        .parse_if("intents.start_within_ms", "a number of milliseconds, from 1000 to 86400000", |time| {
            IntentSettings::START_WITHIN_MS.contains(time)
        })?
        .unwrap_or(usual.start_within_ms);
    Ok(IntentSettings {
        api_leases: api_leases(sources)?.unwrap_or(usual.api_leases),
        start_within_ms,
        lan_guard: sources.switch("intents.lan_guard")?.unwrap_or(usual.lan_guard),
        lan_allowed: networks(sources, "intents.lan_allowed")?.unwrap_or(usual.lan_allowed),
        trusted_proxies: networks(sources, "intents.trusted_proxies")?.unwrap_or(usual.trusted_proxies),
        ..usual
    })
}

/// Whether the API takes leases, if anybody says.
pub fn api_leases(sources: &Sources) -> Result<Option<bool>, ConfigurationError> {
    sources.switch(API_LEASES)
}

/// Networks, if anybody says which: an empty list is said too, and lets nobody in.
fn networks(sources: &Sources, key: &'static str) -> Result<Option<Vec<Network>>, ConfigurationError> {
    let expected = "a list of networks, such as 192.168.0.0/16 or fd00::/8";
    let networks = sources.list(key, expected)?;
    Ok(sources.get(key).map(|_| networks))
}
