//! Every configuration key, and the values that it accepts.

use std::fmt;

use tenure_server::{AgentSettings, ControlSettings, IntentSettings, SerialSettings};

/// The values that a key accepts.
#[derive(Debug, Clone, Copy)]
pub enum AllowedValues {
    /// Any text; what is wrong with it is found where it is used.
    Text,
    /// Text that is parsed where it is used, described for error messages.
    Parsed(&'static str),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Yes or no.
    Switch,
    /// A number of these units, from the first bound to the second, both included.
    Number(&'static str, u64, u64),
    /// An array in a file; text with commas in the environment.
    List(&'static str),
    /// A program with its arguments: an array in a file; JSON in the environment, since arguments may have commas.
    Command,
}

use AllowedValues::{Command, List, Number, OneOf, Parsed, Switch, Text};
use tenure_worker::Settings;

const NETWORKS: AllowedValues = List("a list of networks, such as 192.168.0.0/16 or fd00::/8");
const DEVICE_PATH: AllowedValues = Parsed("the path of a device, or `none`");
const BYTES: AllowedValues = Number("bytes", 0, u64::MAX);
const LEASE_MS: AllowedValues = Number("milliseconds", AgentSettings::MIN_TTL_MS, AgentSettings::MAX_MS);
const CONTROL_MS: AllowedValues =
    Number("milliseconds", *ControlSettings::TTL_MS.start() as u64, *ControlSettings::TTL_MS.end() as u64);
const START_MS: AllowedValues =
    Number("milliseconds", *IntentSettings::START_WITHIN_MS.start(), *IntentSettings::START_WITHIN_MS.end());
const BAUD: AllowedValues =
    Number("bits per second", *SerialSettings::BAUD.start() as u64, *SerialSettings::BAUD.end() as u64);
const WAIT_MS: AllowedValues = Number("milliseconds", 1, AgentSettings::MAX_MS);
/// A day.
const SECONDS: AllowedValues = Number("seconds", 1, 86_400);

/// Every key. Any other in a file is rejected: a misspelt key must not be ignored.
pub const KEYS: &[(&str, AllowedValues)] = &[
    ("listen", Parsed("an address and a port, such as 127.0.0.1:7420, or `none`")),
    ("data", Text),
    ("control.device", Text),
    ("control.gateway.rules", Text),
    ("socket", Text),
    ("socket.path", Text),
    ("socket.users", List("a list of user ids")),
    ("tls.certificate", Text),
    ("tls.key", Text),
    ("http.hosts", List("a list of names such as tenure.example")),
    ("http.connections", Number("connections", 1, u64::MAX)),
    ("http.idle_seconds", Number("seconds", 1, u64::MAX)),
    ("ledger.witness", Text),
    ("ledger.segment_size", BYTES),
    ("ledger.reserve", BYTES),
    ("ledger.checkpoint_after", Number("events", 1, u64::MAX)),
    ("ledger.retention_days", Number("days", 0, u64::MAX)),
    ("ledger.retention_bytes", BYTES),
    ("control.ttl_ms", CONTROL_MS),
    (
        "control.heartbeat_interval_ms",
        Number("milliseconds", ControlSettings::MIN_HEARTBEAT_INTERVAL_MS as u64, u64::MAX),
    ),
    ("control.millis_at_start", Number("milliseconds", 0, u32::MAX as u64)),
    ("control.serial.path", DEVICE_PATH),
    ("control.serial.baud", BAUD),
    ("control.encoder.path", DEVICE_PATH),
    ("control.encoder.parameter", Parsed("a parameter of the device, such as brightness")),
    ("control.encoder.step", Parsed("a number from -255 to 255, but not 0")),
    ("intents.api_leases", Switch),
    ("intents.start_within_ms", START_MS),
    ("intents.lan_guard", Switch),
    ("intents.lan_allowed", NETWORKS),
    ("intents.trusted_proxies", NETWORKS),
    ("intents.worker", Switch),
    ("intents.tuners", Number("tuners", 0, Settings::MAX_TUNERS as u64)),
    ("intents.ttl_ms", LEASE_MS),
    ("intents.renew_every_ms", Number("milliseconds", 1, u64::MAX)),
    ("intents.stop_grace_ms", Number("milliseconds", 0, u64::MAX)),
    ("intents.logs", Text),
    ("intents.logs_kept", Number("files", 0, u64::MAX)),
    ("intents.pipeline.command", Command),
    ("intents.pipeline.recording_command", Command),
    ("agents.ttl_ms", LEASE_MS),
    ("agents.longest_ttl_ms", LEASE_MS),
    ("agents.wait_ms", WAIT_MS),
    ("agents.longest_wait_ms", WAIT_MS),
    ("agents.backoff_ms", WAIT_MS),
    ("agents.longest_backoff_ms", WAIT_MS),
    ("agents.lease_time_ms", LEASE_MS),
    ("agents.idle_ms", LEASE_MS),
    ("files.retry_seconds", SECONDS),
    ("files.idle_seconds", SECONDS),
    ("files.mode", OneOf(&["deny", "warn"])),
    ("files.shells", OneOf(&["any", "guarded"])),
    ("files.audit", Parsed("true or false")),
    ("files.stop_when_idle_minutes", Number("minutes", 1, 365 * 24 * 60)),
];

/// The table whose keys the user chooses: one for each pool.
pub const POOLS: &str = "pools";

/// The values that `key` accepts, if it exists.
pub fn allowed_values(key: &str) -> Option<AllowedValues> {
    let is_pool = key.split_once('.').is_some_and(|(table, _)| table == POOLS);
    let known = KEYS.iter().find(|(known, _)| *known == key).map(|(_, allowed)| *allowed);
    known.or(is_pool.then_some(List("a number of members, or a list of names")))
}

/// Whether `key` is a table.
pub fn is_table(key: &str) -> bool {
    key == POOLS
        || KEYS.iter().any(|(known, _)| known.strip_prefix(key).is_some_and(|rest| rest.starts_with('.')))
}

/// The name of `key` in the environment.
pub fn environment_variable_of(key: &str) -> String {
    format!("TENURE_{}", key.replace('.', "_").to_ascii_uppercase())
}

impl fmt::Display for AllowedValues {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Text | Command => formatter.write_str("text"),
            Parsed(what) | List(what) => formatter.write_str(what),
            OneOf(words) => write!(formatter, "\"{}\"", words.join("\" or \"")),
            Switch => formatter.write_str("true or false"),
            Number(unit, 0, u64::MAX) => write!(formatter, "a number of {unit}"),
            Number(unit, min, u64::MAX) => write!(formatter, "a number of {unit}, {min} at least"),
            Number(unit, min, max) => write!(formatter, "a number of {unit}, from {min} to {max}"),
        }
    }
}
