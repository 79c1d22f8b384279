//! The table for WLED, as its documentation has it. `docs/guides/gateway.md` says which page each line comes from.

/// What `[control.gateway] rules` calls it.
pub const NAME: &str = "wled";

pub const TABLE: &str = include_str!("wled.rules");
