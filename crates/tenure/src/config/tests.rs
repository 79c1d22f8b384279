use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use super::*;

/// The configuration of these flags, variables and this file.
pub(super) fn configuration(
    flags: &[(&'static str, &str)],
    variables: &[(&str, &str)],
    file: &str,
) -> Result<Configuration, ConfigurationError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tenure/config.toml");
    std::fs::create_dir(folder.path().join("tenure")).unwrap();
    std::fs::write(&path, file).unwrap();
    let mut all: BTreeMap<_, _> =
        variables.iter().map(|(name, value)| (*name, OsString::from(value))).collect();
    all.insert("XDG_CONFIG_HOME", folder.path().into());
    all.entry("HOME").or_insert("/home/somebody".into());
    let folders = Folders::new(|name| all.get(name).cloned());
    let variables = all.iter().map(|(name, value)| (OsString::from(name), value.clone())).collect();
    let values = flags.iter().map(|(key, value)| (*key, OsString::from(value))).collect();
    Configuration::new(&MergedValues::new(Flags { config: None, values }, &variables, &folders)?, &folders)
}

#[test]
fn defaults_apply_without_flags_variables_or_file() {
    let found = configuration(&[], &[], "").unwrap();
    assert_eq!(found.network.listen.unwrap().to_string(), "127.0.0.1:7420");
    assert_eq!((found.network.tls, found.network.hosts), (None, Vec::new()));
    assert_eq!(found.network.limits, tenure_server::ConnectionLimits::default());
    assert_eq!(found.data, Path::new("/home/somebody/.local/state/tenure"));
    let witness = Path::new("/home/somebody/.local/state/tenure-witness");
    assert_eq!(found.ledger.options.witness.as_deref(), Some(witness));
    assert_eq!((found.ledger.options.segment_size, found.ledger.options.reserve), (16 << 20, None));
    assert_eq!(found.routine, MaintenanceOptions::default());
    let found = configuration(&[], &[("XDG_STATE_HOME", "/var/state")], "").unwrap();
    assert_eq!(found.data, Path::new("/var/state/tenure"));
    let relative = configuration(&[], &[("XDG_STATE_HOME", "state")], "").unwrap();
    assert_eq!(relative.data, Path::new("/home/somebody/.local/state/tenure"));
}

#[test]
fn flags_override_the_environment_which_overrides_the_file() {
    let file = "listen = '127.0.0.1:3'\n[ledger]\nsegment_size = 4096\nwitness = '/w'\n";
    let found = configuration(&[], &[], file).unwrap();
    assert_eq!((found.network.listen.unwrap().port(), found.ledger.options.segment_size), (3, 4096));
    assert_eq!(found.ledger.options.witness.as_deref(), Some(Path::new("/w")));
    let variables = [("TENURE_LISTEN", "127.0.0.1:2"), ("TENURE_LEDGER_SEGMENT_SIZE", "8192")];
    let found = configuration(&[], &variables, file).unwrap();
    assert_eq!((found.network.listen.unwrap().port(), found.ledger.options.segment_size), (2, 8192));
    let found = configuration(&[("listen", "127.0.0.1:1")], &variables, file).unwrap();
    assert_eq!(found.network.listen.unwrap().port(), 1);
}

#[test]
fn unknown_key_is_rejected_with_its_file() {
    for (file, key) in [
        ("listen = 'x'", "`listen`"),
        ("[ledger]\nsize = 1", "`ledger.size`"),
        ("[leger]\nwitness = 'x'", "`leger`"),
        ("[listen]\nat = 'x'", "`listen`"),
    ] {
        let refused = configuration(&[], &[], file).unwrap_err().to_string();
        assert!(refused.contains(key) && refused.contains("config.toml"), "{refused}");
    }
}

#[test]
fn invalid_value_is_rejected_with_its_origin() {
    for (variables, file, origin) in [
        (&[("TENURE_LISTEN", "here")][..], "", "TENURE_LISTEN is \"here\""),
        (&[], "listen = 7420", "`listen` in "),
        (&[], "[ledger]\nsegment_size = -1", "`ledger.segment_size` in "),
        (&[], "listen = ['a']", "`listen` in "),
        (&[], "listen = ", "is not TOML"),
    ] {
        let refused = configuration(&[], variables, file).unwrap_err().to_string();
        assert!(refused.contains(origin), "{refused}");
    }
}

#[test]
fn named_configuration_file_must_exist() {
    let folders = Folders::default();
    let flags = Flags { config: Some("/nowhere/config.toml".into()), ..Flags::default() };
    let refused = MergedValues::new(flags, &BTreeMap::new(), &folders).unwrap_err().to_string();
    assert!(refused.contains("/nowhere/config.toml cannot be read"), "{refused}");
    let nothing = Configuration::new(&MergedValues::default(), &folders).unwrap_err().to_string();
    assert!(nothing.contains("neither XDG_STATE_HOME nor HOME"), "{nothing}");
}

#[test]
fn local_socket_defaults_to_the_path_that_clients_use() {
    let socket = |flags: &[(&'static str, &str)], variables: &[(&str, &str)], file: &str| {
        let place = configuration(flags, variables, file).unwrap().network.socket;
        place.map(|place| (place.path.to_str().unwrap().to_owned(), place.users, place.is_explicit))
    };
    let usual = socket(&[], &[("XDG_RUNTIME_DIR", "/run/user/7")], "");
    assert_eq!(usual, Some(("/run/user/7/tenure/tenure.sock".into(), vec![], false)));
    let (path, _, _) = socket(&[], &[], "").unwrap();
    assert!(path.starts_with("/tmp/tenure-") && path.ends_with("/tenure.sock"), "{path}");
    assert_eq!(socket(&[], &[("TENURE_SOCKET", "none")], "socket = '/a'"), None);
    assert_eq!(socket(&[], &[], "socket = '/a'"), Some(("/a".into(), vec![], true)));
    assert_eq!(socket(&[("socket", "/b")], &[], "socket = '/a'"), Some(("/b".into(), vec![], true)));
    let table = "[socket]\npath = '/c'\nusers = [1000, 1001]\n";
    assert_eq!(socket(&[], &[], table), Some(("/c".into(), vec![1000, 1001], true)));
    let users = [("TENURE_SOCKET_USERS", "5, 6")];
    assert_eq!(socket(&[], &users, "socket = '/a'"), Some(("/a".into(), vec![5, 6], true)));
}

#[test]
fn listen_tls_and_http_settings_are_read() {
    let file = "listen = 'none'\n[tls]\ncertificate = '/c'\nkey = '/k'\n\
                [http]\nhosts = ['a.example', 'b.example']\nconnections = 5\nidle_seconds = 7\n";
    let reach = configuration(&[], &[], file).unwrap().network;
    assert_eq!(reach.listen, None);
    let files = reach.tls.unwrap();
    assert_eq!((files.certificate.as_path(), files.key.as_path()), (Path::new("/c"), Path::new("/k")));
    assert_eq!(reach.hosts, ["a.example", "b.example"]);
    assert_eq!((reach.limits.connections, reach.limits.idle.as_secs()), (5, 7));
    for (file, wrong) in [
        ("[tls]\nkey = '/k'", "no `tls.certificate`"),
        ("[tls]\ncertificate = '/k'", "no `tls.key`"),
        ("[http]\nconnections = 0", "1 at least"),
        ("[http]\nidle_seconds = 0", "1 at least"),
        ("[http]\nhosts = [1.5]", "a list of strings"),
        ("[socket]\nusers = ['root']", "a list of user ids"),
        ("[socket]\nowner = 1", "`socket.owner`"),
    ] {
        let refused = configuration(&[], &[], file).unwrap_err().to_string();
        assert!(refused.contains(wrong), "{refused}");
    }
}

#[test]
fn pool_names_and_members_are_read() {
    let file = "[pools]\ntuner = 2\ndoor = ['front', 'back']\n";
    let pools = |found: Configuration| format!("{:?}", found.pools);
    let found = pools(configuration(&[], &[], file).unwrap());
    assert!(
        ["tuner:0", "tuner:1", "door:front", "door:back"].iter().all(|name| found.contains(name)),
        "{found}"
    );
    let found = pools(configuration(&[], &[("TENURE_POOLS_TUNER", "1")], file).unwrap());
    assert!(found.contains("tuner:0") && !found.contains("tuner:1"), "{found}");
    for file in ["[pools]\ntuner = 0", "[pools]\ntuner = 65", "[pools]\ntuner = ['a', 'a']", "pools = 3"] {
        let refused = configuration(&[], &[], file).unwrap_err().to_string();
        assert!(refused.contains("pools"), "{refused}");
    }
    let variables = [("TENURE_POOLS_LAB".into(), "x,y".into()), ("TENURE_POOLS_".into(), "1".into())];
    let sources = MergedValues::new(Flags::default(), &variables.into(), &Folders::default()).unwrap();
    let chosen: Vec<_> = sources.pools().map(|(name, value)| (name, value.text.clone())).collect();
    assert_eq!(chosen, [("lab", "x,y".into())], "one that no file names counts too");
}

#[test]
fn control_device_and_inputs_are_read() {
    let control =
        |variables: &[(&str, &str)], file: &str| configuration(&[], variables, file).unwrap().control;
    let usual = control(&[], "");
    assert!(usual.gateway.is_none() && usual.serial.is_none() && usual.encoder.is_none());
    assert_eq!((usual.ttl_ms, usual.heartbeat_interval_ms, usual.millis_at_start), (5_000, 1_000, 0));
    let file = "[control]\nttl_ms = 2000\nmillis_at_start = 4294964295\n\
                [control.serial]\npath = '/dev/ttyUSB0'\n\
                [control.encoder]\npath = '/dev/input/event3'\nstep = -4\n";
    let found = control(&[], file);
    assert_eq!((found.ttl_ms, found.heartbeat_interval_ms), (2_000, 400), "a fifth of a short lease");
    assert_eq!(found.millis_at_start, u32::MAX - 3_000);
    let (serial, encoder) = (found.serial.unwrap(), found.encoder.unwrap());
    assert_eq!((serial.path.as_path(), serial.baud), (Path::new("/dev/ttyUSB0"), 115_200));
    assert_eq!((encoder.parameter.as_str(), encoder.step), ("brightness", -4));
    let variables = [
        ("TENURE_CONTROL_TTL_MS", "7000"),
        ("TENURE_CONTROL_SERIAL_PATH", "none"),
        ("TENURE_CONTROL_ENCODER_PARAMETER", "speed"),
    ];
    let found = control(&variables, file);
    assert_eq!((found.ttl_ms, found.serial), (7_000, None));
    assert_eq!(found.encoder.unwrap().parameter, "speed");
}

#[test]
fn invalid_control_setting_is_rejected_with_what_is_allowed() {
    for (file, wrong) in [
        ("[control]\nttl_ms = 999", "from 1000 to 3600000"),
        ("[control]\nttl_ms = 'soon'", "from 1000 to 3600000"),
        ("[control]\nheartbeat_interval_ms = 9", "10 at least"),
        ("[control]\nheartbeat_interval_ms = 5000", "before its next heartbeat"),
        ("[control]\nmillis_at_start = 4294967296", "from 0 to 4294967295"),
        ("[control]\nlease = 1", "`control.lease`"),
        ("[control.serial]\nbaud = 9600", "no `control.serial.path`"),
        ("[control.serial]\npath = '/a'\nbaud = 0", "from 50 to 12000000"),
        ("[control.serial]\npath = ''", "the path of a device"),
        ("[control.encoder]\nstep = 1", "no `control.encoder.path`"),
        ("[control.encoder]\npath = '/a'\nstep = 0", "but not 0"),
        ("[control.encoder]\npath = '/a'\nstep = 256", "but not 0"),
        ("[control.encoder]\npath = '/a'\nparameter = 'a b'", "such as brightness"),
    ] {
        let refused = configuration(&[], &[], file).unwrap_err().to_string();
        assert!(refused.contains(wrong), "{file}: {refused}");
    }
}

#[test]
fn gateway_device_and_rules_are_read_from_flag_or_file() {
    assert!(configuration(&[], &[], "").unwrap().control.gateway.is_none());
    let found =
        configuration(&[("control.device", "http://wled.local")], &[], "[control]\ndevice = 'http://other'");
    let found = found.unwrap().control.gateway.unwrap();
    assert_eq!(found.device.to_string(), "http://wled.local");
    assert_eq!(found.rules, tenure_gateway::device_rules::Rules::wled());
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("lamp.rules");
    std::fs::write(&table, "reads GET /lamp\n").unwrap();
    let file =
        format!("[control]\ndevice = 'http://lamp:81'\n[control.gateway]\nrules = '{}'", table.display());
    let found = configuration(&[], &[], &file).unwrap().control.gateway.unwrap();
    assert_eq!(found.rules.rule_counts(), (1, 0));
    let named = configuration(&[], &[("TENURE_CONTROL_GATEWAY_RULES", "wled")], &file)
        .unwrap()
        .control
        .gateway
        .unwrap();
    assert_eq!(named.rules, tenure_gateway::device_rules::Rules::wled());
    std::fs::write(&table, "reads GET /lamp\nread GET /lamp\n").unwrap();
    for (flags, file, expected) in [
        (&[("control.device", "wled.local")][..], "", "--device is not where a device is; write http://HOST"),
        (&[("control.device", "https://wled.local")], "", "--device begins with https"),
        (&[], "[control]\ndevice = 'http://u:hunter2@lamp'", "has a name or password in it"),
        (&[], "[control.gateway]\nrules = 'wled'", "no `control.device`"),
        (
            &[],
            "[control]\ndevice = 'http://lamp'\n[control.gateway]\nrules = '/nowhere'",
            "names the file /nowhere",
        ),
        (
            &[("control.device", "http://lamp")],
            "[control.serial]\npath = '/dev/ttyUSB0'",
            "`control.serial.path` moves the built-in light",
        ),
        (
            &[("control.device", "http://lamp")],
            "[control.encoder]\npath = '/dev/input/event3'",
            "`control.encoder.path` moves the built-in light",
        ),
        (&[], "[control]\nlamp = 'x'", "`control.lamp`"),
        (&[], file.as_str(), "line 2: `read` is no class"),
    ] {
        let refused = configuration(flags, &[], file).unwrap_err().to_string();
        assert!(refused.contains(expected) && !refused.contains("hunter2"), "{refused}");
    }
}

/// Every key: a value that changes the configuration, what else must be set for that, and values that are rejected with
/// a part of what the message says is allowed.
type KeyCase = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

const ADDRESS: &str = "an address and a port, such as 127.0.0.1:7420, or `none`";
const NETWORKS: &str = "a list of networks, such as 192.168.0.0/16 or fd00::/8";
const LEASE_MS: &str = "a number of milliseconds, from 1000 to 86400000";
const WAIT_MS: &str = "a number of milliseconds, from 1 to 86400000";
const CONTROL_MS: &str = "a number of milliseconds, from 1000 to 3600000";
const U32: &str = "a number of milliseconds, from 0 to 4294967295";
const BAUD: &str = "a number of bits per second, from 50 to 12000000";
const PARAMETER: &str = "a parameter of the device, such as brightness";
const STEP: &str = "a number from -255 to 255, but not 0";
const SECONDS: &str = "a number of seconds, from 1 to 86400";
const MINUTES: &str = "a number of minutes, from 1 to 525600";
const DEVICE_PATH: &str = "the path of a device, or `none`";
const PROGRAM: &str = "a program with its arguments, as a list of strings";
const PIPELINE: &str = "intents.pipeline.command = ['a']";
const SERIAL: &str = "control.serial.path = '/dev/ttyUSB0'";
const ENCODER: &str = "control.encoder.path = '/dev/input/event3'";
/// More than any whole number that is read.
const HUGE: &str = "18446744073709551616";

const KEY_CASES: &[KeyCase] = &[
    ("listen", "127.0.0.1:1", "", &[("here", ADDRESS), ("127.0.0.1", ADDRESS), ("", ADDRESS)]),
    ("data", "/d", "", &[]),
    (
        "control.device",
        "http://lamp",
        "",
        &[("lamp", "write http://HOST"), ("https://lamp", "begins with https")],
    ),
    (
        "control.gateway.rules",
        "/dev/null",
        "control.device = 'http://lamp'",
        &[("/nowhere", "write \"wled\"")],
    ),
    ("socket", "/s", "", &[]),
    ("socket.path", "/s", "", &[]),
    ("socket.users", "5", "", &[("root", "a list of user ids"), ("-1", "a list of user ids")]),
    ("tls.certificate", "/c", "tls.key = '/k'", &[]),
    ("tls.key", "/k", "tls.certificate = '/c'", &[]),
    ("http.hosts", "a.example", "", &[]),
    ("http.connections", "5", "", &[("0", "a number of connections, 1 at least"), (HUGE, "1 at least")]),
    ("http.idle_seconds", "5", "", &[("0", "a number of seconds, 1 at least"), ("4294967296", "1 at least")]),
    ("ledger.witness", "/w", "", &[]),
    ("ledger.segment_size", "4096", "", &[("-1", "a number of bytes"), ("big", "a number of bytes")]),
    ("ledger.reserve", "0", "", &[("-1", "a number of bytes"), (HUGE, "a number of bytes")]),
    ("ledger.checkpoint_after", "7", "", &[("0", "a number of events, 1 at least"), ("-1", "1 at least")]),
    ("ledger.retention_days", "3", "", &[("-1", "a number of days"), ("1.5", "a number of days")]),
    ("ledger.retention_bytes", "3", "", &[("-1", "a number of bytes"), ("1k", "a number of bytes")]),
    ("control.ttl_ms", "6000", "", &[("999", CONTROL_MS), ("3600001", CONTROL_MS), ("5s", CONTROL_MS)]),
    ("control.heartbeat_interval_ms", "10", "", &[("9", "a number of milliseconds, 10 at least")]),
    ("control.millis_at_start", "4294967295", "", &[("4294967296", U32), ("-1", U32)]),
    ("control.serial.path", "/dev/ttyUSB0", "", &[("", DEVICE_PATH)]),
    ("control.serial.baud", "9600", SERIAL, &[("49", BAUD), ("12000001", BAUD), ("fast", BAUD)]),
    ("control.encoder.path", "/dev/input/event3", "", &[("", DEVICE_PATH)]),
    ("control.encoder.parameter", "speed", ENCODER, &[("a b", PARAMETER), ("", PARAMETER)]),
    ("control.encoder.step", "-255", ENCODER, &[("0", STEP), ("256", STEP), ("-256", STEP)]),
    ("intents.api_leases", "true", "", &[("perhaps", "true or false"), ("", "true or false")]),
    ("intents.start_within_ms", "1000", "", &[("999", LEASE_MS), ("86400001", LEASE_MS)]),
    ("intents.lan_guard", "false", "", &[("2", "true or false")]),
    ("intents.lan_allowed", "10.0.0.0/8", "", &[("10.0.0.1/8", NETWORKS), ("local", NETWORKS)]),
    ("intents.trusted_proxies", "10.0.0.0/8", "", &[("10.0.0.0/33", NETWORKS)]),
    ("intents.worker", "false", PIPELINE, &[("maybe", "true or false")]),
    ("intents.tuners", "64", PIPELINE, &[("65", "a number of tuners, from 0 to 64"), ("-1", "from 0 to 64")]),
    ("intents.ttl_ms", "60000", PIPELINE, &[("999", LEASE_MS), ("86400001", LEASE_MS)]),
    ("intents.renew_every_ms", "1", PIPELINE, &[("0", "a number of milliseconds, 1 at least")]),
    ("intents.stop_grace_ms", "0", PIPELINE, &[("-1", "a number of milliseconds")]),
    ("intents.logs", "/l", PIPELINE, &[]),
    ("intents.logs_kept", "0", PIPELINE, &[("-1", "a number of files")]),
    ("intents.pipeline.command", r#"["a","b, c"]"#, "", &[("a", PROGRAM), ("[]", "names no program")]),
    (
        "intents.pipeline.recording_command",
        r#"["a"]"#,
        PIPELINE,
        &[("[1]", PROGRAM), ("[]", "names no program")],
    ),
    ("agents.ttl_ms", "1000", "", &[("999", LEASE_MS), ("86400001", LEASE_MS)]),
    ("agents.longest_ttl_ms", "1000", "", &[("999", LEASE_MS), ("86400001", LEASE_MS)]),
    ("agents.wait_ms", "1", "", &[("0", WAIT_MS), ("86400001", WAIT_MS)]),
    ("agents.longest_wait_ms", "1", "", &[("0", WAIT_MS), ("86400001", WAIT_MS)]),
    ("agents.backoff_ms", "1", "", &[("0", WAIT_MS), ("86400001", WAIT_MS)]),
    ("agents.longest_backoff_ms", "1", "", &[("0", WAIT_MS), ("86400001", WAIT_MS)]),
    ("agents.lease_time_ms", "1000", "", &[("999", LEASE_MS), ("86400001", LEASE_MS)]),
    ("agents.idle_ms", "86400000", "", &[("999", LEASE_MS), ("86400001", LEASE_MS)]),
    ("files.retry_seconds", "86400", "", &[("0", SECONDS), ("86401", SECONDS)]),
    ("files.idle_seconds", "1", "", &[("0", SECONDS), ("86401", SECONDS)]),
    ("files.mode", "warn", "", &[("allow", "\"deny\" or \"warn\""), ("Warn", "\"deny\" or \"warn\"")]),
    ("files.shells", "guarded", "", &[("none", "\"any\" or \"guarded\"")]),
    ("files.audit", "false", "", &[("sometimes", "true or false"), ("1", "true or false")]),
    ("files.stop_when_idle_minutes", "1", "", &[("0", MINUTES), ("525601", MINUTES)]),
];

/// The name of a key in the environment.
fn variable_name(key: &str) -> String {
    format!("TENURE_{}", key.replace('.', "_").to_uppercase())
}

fn known_keys() -> impl Iterator<Item = &'static str> {
    keys::KEYS.iter().map(|(key, _)| *key)
}

#[test]
fn every_key_is_read_from_the_file_and_overridden_by_its_variable() {
    let keys: Vec<_> = KEY_CASES.iter().map(|row| row.0).collect();
    assert_eq!(keys, known_keys().collect::<Vec<_>>(), "a row for each key");
    for (key, good, beside, _) in KEY_CASES {
        let shown = |variables: &[(&str, &str)], line: &str| {
            let found = configuration(&[], variables, &format!("{beside}\n{line}\n"));
            format!("{:?}", found.unwrap_or_else(|error| panic!("{key}: {error}")))
        };
        let unset =
            configuration(&[], &[], beside).map_or_else(|_| String::new(), |found| format!("{found:?}"));
        let quoted = shown(&[], &format!("{key} = '{good}'"));
        assert!(quoted != unset, "{key}");
        let is_literal = good.parse::<i64>().is_ok() || good.parse::<bool>().is_ok() || good.starts_with('[');
        if is_literal {
            assert!(shown(&[], &format!("{key} = {good}")) == quoted, "{key} as a literal");
        }
        let variable = variable_name(key);
        assert!(shown(&[(&variable, good)], "") == quoted, "{variable}");
        // `socket` is above `socket.path`, wherever they are set; a bad value below a good one is not looked at.
        let below = if *key == "socket.path" { String::new() } else { format!("{key} = '-'") };
        assert!(shown(&[(&variable, good)], &below) == quoted, "{variable} above the file");
    }
}

#[test]
fn every_rejected_value_is_reported_with_key_origin_and_what_is_allowed() {
    for (key, _, beside, rejected) in KEY_CASES {
        for (bad, allowed) in *rejected {
            let variable = variable_name(key);
            let refused = configuration(&[], &[(&variable, bad)], beside).unwrap_err().to_string();
            assert!(refused.contains(&variable) && refused.contains(allowed), "{key} = {bad}: {refused}");
            let file = format!("{beside}\n\n{key} = '{bad}'\n");
            let refused = configuration(&[], &[], &file).unwrap_err().to_string();
            let is_named = refused.contains(&format!("`{key}` in ")) && refused.contains("config.toml:3 ");
            assert!(is_named && refused.contains(allowed), "{key} = {bad}: {refused}");
        }
        for literal in ["1.5", "1979-05-27", "[1.5]", "[[1]]", "{ a = 1 }"] {
            let refused = configuration(&[], &[], &format!("{key} = {literal}\n")).unwrap_err().to_string();
            assert!(
                refused.contains(*key) && refused.contains("config.toml"),
                "{key} = {literal}: {refused}"
            );
        }
    }
}

#[test]
fn every_rejected_flag_value_is_reported_with_its_flag() {
    for (key, bad, flag) in [("listen", "here", "--listen"), ("control.device", "lamp", "--device")] {
        let refused = configuration(&[(key, bad)], &[], "").unwrap_err().to_string();
        assert!(refused.starts_with(flag), "{refused}");
    }
}

mod agent_settings {
    use super::*;

    fn found(variables: &[(&str, &str)], file: &str) -> Result<AgentSettings, String> {
        configuration(&[], variables, file).map(|found| found.agents).map_err(|error| error.to_string())
    }

    #[test]
    fn agent_ttl_defaults_to_one_minute_with_a_maximum_of_five() {
        assert_eq!(found(&[], ""), Ok(AgentSettings::default()));
        let AgentSettings { ttl_ms, max_ttl_ms: longest_ttl_ms, lease_time_ms, idle_ms, .. } =
            AgentSettings::default();
        assert_eq!((ttl_ms, longest_ttl_ms, lease_time_ms, idle_ms), (60_000, 300_000, None, None));
    }

    #[test]
    fn settings_are_read_from_file_and_environment() {
        let file = "[agents]\nttl_ms = 2000\nlongest_ttl_ms = 4000\nwait_ms = 10\nlongest_wait_ms = 20\nbackoff_ms = 1\n\
                    longest_backoff_ms = 2\nlease_time_ms = 3600000\nidle_ms = 600000\n";
        let expected = AgentSettings {
            ttl_ms: 2_000,
            max_ttl_ms: 4_000,
            wait_ms: 10,
            max_wait_ms: 20,
            backoff_ms: 1,
            max_backoff_ms: 2,
            lease_time_ms: Some(3_600_000),
            idle_ms: Some(600_000),
        };
        assert_eq!(found(&[], file), Ok(expected.clone()));
        let sooner = AgentSettings { idle_ms: Some(1_000), ..expected };
        assert_eq!(found(&[("TENURE_AGENTS_IDLE_MS", "1000")], file), Ok(sooner));
    }

    #[test]
    fn invalid_values_are_rejected() {
        for file in [
            "ttl_ms = 999",
            "longest_ttl_ms = 86400001",
            "wait_ms = 0",
            "idle_ms = 0",
            "lease_time_ms = \"x\"",
        ] {
            assert!(found(&[], &format!("[agents]\n{file}\n")).is_err(), "{file}");
        }
    }
}

mod file_settings {
    use super::*;

    fn found(file: &str) -> Result<FileSettings, String> {
        configuration(&[], &[], file).map(|found| found.files).map_err(|error| error.to_string())
    }

    // S4-24, S4-33
    #[test]
    fn retry_defaults_to_three_minutes_and_idle_to_half_a_minute() {
        let usual = FileSettings {
            retry_ms: 180_000,
            idle_ms: 30_000,
            warn_only: false,
            guarded_shells: false,
            audit: true,
            stop_when_idle_ms: None,
        };
        assert_eq!(found(""), Ok(usual));
    }

    #[test]
    fn settings_are_read_from_the_file() {
        let file = "[files]\nretry_seconds = 5\nidle_seconds = 2\nmode = \"warn\"\nshells = \"guarded\"\naudit = false\n\
                    stop_when_idle_minutes = 15\n";
        let settings = FileSettings {
            retry_ms: 5_000,
            idle_ms: 2_000,
            warn_only: true,
            guarded_shells: true,
            audit: false,
            stop_when_idle_ms: Some(900_000),
        };
        assert_eq!(found(file), Ok(settings));
        assert_eq!(found("[files]\nmode = \"deny\"\n"), Ok(FileSettings::default()));
    }

    #[test]
    fn invalid_values_are_rejected_with_their_key() {
        for file in [
            "retry_seconds = 0",
            "retry_seconds = 86401",
            "idle_seconds = \"x\"",
            "mode = \"allow\"",
            "shells = \"none\"",
            "audit = \"sometimes\"",
            "stop_when_idle_minutes = 0",
        ] {
            let error = found(&format!("[files]\n{file}\n")).unwrap_err();
            assert!(error.contains("`files."), "{file}: {error}");
        }
    }
}

mod intent_settings {
    use tenure_server::Network;

    use super::*;

    fn found(variables: &[(&str, &str)], file: &str) -> Result<IntentSettings, String> {
        configuration(&[], variables, file).map(|found| found.intents).map_err(|error| error.to_string())
    }

    #[test]
    fn intents_default_to_the_local_network_and_no_api_leases() {
        assert_eq!(found(&[], ""), Ok(IntentSettings::default()));
        assert!(!IntentSettings::default().api_leases && IntentSettings::default().lan_guard);
    }

    #[test]
    fn settings_are_read_from_the_file() {
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
    fn api_leases_has_two_variables_and_the_tenure_variable_wins() {
        let is_on = |variables: &[(&str, &str)], file: &str| found(variables, file).unwrap().api_leases;
        assert!(is_on(&[("XG2G_V3_API_LEASES", "true")], "[intents]\napi_leases = false"));
        assert!(is_on(&[("XG2G_V3_API_LEASES", "1")], ""));
        assert!(!is_on(&[("XG2G_V3_API_LEASES", "off")], "[intents]\napi_leases = true"));
        assert!(!is_on(&[("XG2G_V3_API_LEASES", "on"), ("TENURE_INTENTS_API_LEASES", "no")], ""));
        let refused = found(&[("XG2G_V3_API_LEASES", "perhaps")], "").unwrap_err();
        assert!(refused.contains("XG2G_V3_API_LEASES") && refused.contains("true or false"), "{refused}");
    }

    #[test]
    fn invalid_values_are_rejected_with_their_key() {
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

mod worker_settings {
    use super::*;
    use tenure_worker::{CommandTemplate, Settings};

    const PIPELINE: &str =
        "[intents.pipeline]\ncommand = ['ffmpeg', '-vf', 'scale=1:2,fps=3', '{service}']\n";

    fn of(file: &str) -> Result<Option<WorkerConfiguration>, String> {
        configuration(&[], &[], file).map(|found| found.worker).map_err(|error| error.to_string())
    }

    #[test]
    fn pipeline_command_enables_the_worker_in_the_server() {
        assert_eq!(of(""), Ok(None));
        assert_eq!(of("[intents]\ntuners = 2"), Ok(None));
        let found = of(PIPELINE).unwrap().unwrap();
        assert!(found.is_in_server);
        let Settings { tuners, ttl_ms, renew_every_ms, stop_grace_ms, logs, logs_kept, .. } = found.settings;
        assert_eq!((tuners, ttl_ms, renew_every_ms, stop_grace_ms), (0, 30_000, 10_000, 5_000));
        assert_eq!(
            (logs.as_path(), logs_kept),
            (Path::new("/home/somebody/.local/state/tenure/sessions"), 200)
        );
        let arguments = ["ffmpeg", "-vf", "scale=1:2,fps=3", "{service}"].map(str::to_owned);
        assert_eq!(found.settings.command, CommandTemplate::parse(&arguments).unwrap(), "commas and all");
        let elsewhere = of(&format!("[intents]\nworker = false\ntuners = 64\n{PIPELINE}")).unwrap().unwrap();
        assert!(!elsewhere.is_in_server);
        assert_eq!(elsewhere.settings.tuners, 64);
    }

    #[test]
    fn command_in_the_environment_is_json() {
        let variable = ("TENURE_INTENTS_PIPELINE_COMMAND", r#"["sh", "-c", "echo a, b"]"#);
        let found = configuration(&[], &[variable], "").unwrap().worker.unwrap();
        let arguments = ["sh", "-c", "echo a, b"].map(str::to_owned);
        assert_eq!(found.settings.command, CommandTemplate::parse(&arguments).unwrap());
    }

    #[test]
    fn invalid_command_is_rejected_without_repeating_it() {
        let text = "ffmpeg -i http://root:hunter2@box/{service}";
        let variable = ("TENURE_INTENTS_PIPELINE_COMMAND", text);
        let of_variable = configuration(&[], &[variable], "").unwrap_err().to_string();
        let of_file = of(&format!("[intents.pipeline]\ncommand = '{text}'")).unwrap_err();
        for refused in [of_variable, of_file] {
            assert!(refused.contains("a program with its arguments"), "{refused}");
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn short_ttl_shortens_renewal_interval_and_grace_period() {
        let found = of(&format!("[intents]\nttl_ms = 2000\n{PIPELINE}")).unwrap().unwrap().settings;
        assert_eq!((found.renew_every_ms, found.stop_grace_ms), (666, 500));
    }

    #[test]
    fn invalid_worker_settings_are_rejected() {
        for (intents, expected) in [
            ("tuners = 65", "`intents.tuners` in "),
            ("tuners = -1", "`intents.tuners` in "),
            ("ttl_ms = 999", "`intents.ttl_ms` in "),
            ("renew_every_ms = 0", "`intents.renew_every_ms` in "),
            ("stop_grace_ms = 20000", "`intents.stop_grace_ms` is 20000"),
            ("renew_every_ms = 25000", "`intents.renew_every_ms` is 25000"),
            ("worker = 'maybe'", "`intents.worker` in "),
        ] {
            let refused = of(&format!("[intents]\n{intents}\n{PIPELINE}")).unwrap_err();
            assert!(refused.contains(expected), "{intents}: {refused}");
        }
        for (file, expected) in [
            ("[intents]\nworker = true", "`intents.worker`"),
            ("[intents.pipeline]\nrecording_command = ['a']", "`intents.pipeline.recording_command`"),
            ("[intents.pipeline]\ncommand = []", "names no program"),
            ("[intents.pipeline]\ncommand = ['a', '{sevice}']", "{sevice}"),
            ("[intents.pipeline]\ncommand = 'a b'", "a program with its arguments"),
            ("[intents.pipeline]\ncommand = ['a', ['b']]", "a program with its arguments"),
        ] {
            let refused = of(file).unwrap_err();
            assert!(refused.contains(expected), "{file}: {refused}");
        }
    }
}

#[test]
fn paths_that_are_not_utf8_are_accepted() {
    use std::os::unix::ffi::OsStringExt as _;
    let path = OsString::from_vec(b"/d\xff".to_vec());
    let folders = Folders::default();
    let flags = Flags { values: [("data", path.clone())].into(), ..Flags::default() };
    let variables = [("TENURE_DATA".into(), path.clone())].into();
    for sources in [
        MergedValues::new(flags, &BTreeMap::new(), &folders).unwrap(),
        MergedValues::new(Flags::default(), &variables, &folders).unwrap(),
    ] {
        assert_eq!(Configuration::data_directory(&sources, &folders).unwrap(), Path::new(&path));
    }
}
