//! Pools: `[pools] tuner = 4` is `tuner:0` to `tuner:3`, `door = ["front", "back"]` is `door:front` and `door:back`.

use tenure_server::Pools;

use super::sources::Value;
use super::{ConfigurationError, Sources};

/// The table with a key for each pool.
pub const TABLE: &str = "pools";

/// The pools that were configured.
pub fn pools(sources: &Sources) -> Result<Pools, ConfigurationError> {
    let mut pools = Pools::default();
    for (name, Value { text, origin }) in sources.in_table(TABLE) {
        let text = text.to_string_lossy();
        let names: Vec<String> = match text.parse::<usize>() {
            Ok(members) => (0..members.min(tenure_server::MOST_MEMBERS + 1)).map(|n| n.to_string()).collect(),
            Err(_) => text.split(',').map(|name| name.trim().to_owned()).collect(),
        };
        let added = pools.add(name, names.iter().map(String::as_str));
        added.map_err(|source| ConfigurationError::Pool { origin: origin.clone(), source })?;
    }
    Ok(pools)
}
