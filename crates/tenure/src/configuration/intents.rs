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

#[cfg(test)]
mod tests {
    use super::super::tests::configuration;
    use super::*;

    fn found(variables: &[(&str, &str)], file: &str) -> Result<IntentSettings, String> {
        configuration(&[], variables, file).map(|found| found.intents).map_err(|error| error.to_string())
    }

    #[test]
    fn nobody_says_anything_and_the_local_network_may_send_intents_that_take_no_lease() {
        assert_eq!(found(&[], ""), Ok(IntentSettings::default()));
        assert!(!IntentSettings::default().api_leases && IntentSettings::default().lan_guard);
    }

    #[test]
    fn what_is_said_counts() {
        let file = "[intents]\napi_leases = true\nstart_within_ms = 2000\nlan_guard = false\n\
                    lan_allowed = ['10.0.0.0/8', 'fd00::/8']\ntrusted_proxies = ['127.0.0.1']\n";
        let intents = found(&[], file).unwrap();
        assert!(intents.api_leases && !intents.lan_guard);
        assert_eq!(intents.start_within_ms, 2_000);
        let shown = |networks: &[Network]| networks.iter().map(Network::to_string).collect::<Vec<_>>();
        assert_eq!(shown(&intents.lan_allowed), ["10.0.0.0/8", "fd00::/8"]);
        assert_eq!(shown(&intents.trusted_proxies), ["127.0.0.1/32"]);
        assert_eq!(found(&[], "[intents]\nlan_allowed = []").unwrap().lan_allowed, []);
    }

    // S1-34
    #[test]
    fn the_flag_has_two_names_in_the_environment_and_ours_counts_more() {
        let is_on = |variables: &[(&str, &str)], file: &str| found(variables, file).unwrap().api_leases;
        assert!(is_on(&[("XG2G_V3_API_LEASES", "true")], "[intents]\napi_leases = false"));
        assert!(is_on(&[("XG2G_V3_API_LEASES", "1")], ""));
        assert!(!is_on(&[("XG2G_V3_API_LEASES", "off")], "[intents]\napi_leases = true"));
        assert!(!is_on(&[("XG2G_V3_API_LEASES", "on"), ("TENURE_INTENTS_API_LEASES", "no")], ""));
        let refused = found(&[("XG2G_V3_API_LEASES", "perhaps")], "").unwrap_err();
        assert!(refused.contains("XG2G_V3_API_LEASES") && refused.contains("true or false"), "{refused}");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for file in [
            "api_leases = 'perhaps'",
            "api_leases = 2",
            "start_within_ms = 999",
            "start_within_ms = 86400001",
            "lan_guard = ''",
            "lan_allowed = ['10.0.0.1/8']",
            "lan_allowed = ['local']",
            "trusted_proxies = [true]",
        ] {
            let refused = found(&[], &format!("[intents]\n{file}")).unwrap_err();
            let key = file.split(' ').next().unwrap();
            assert!(refused.contains(&format!("`intents.{key}` in ")), "{refused}");
        }
    }
}
