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
    let variable = |name: &str| all.get(name).cloned();
    let folders = Folders::new(variable);
    let values = flags.iter().map(|(key, value)| (*key, OsString::from(value))).collect();
    Configuration::new(
        &Sources::new(Flags { config: None, values, ..Flags::default() }, variable, &folders)?,
        &folders,
    )
}

#[test]
fn nobody_says_anything_and_there_are_defaults() {
    let found = configuration(&[], &[], "").unwrap();
    assert_eq!(found.reach.listen.unwrap().to_string(), "127.0.0.1:7420");
    assert_eq!((found.reach.tls, found.reach.hosts), (None, Vec::new()));
    assert_eq!(found.reach.limits, tenure_server::Limits::default());
    assert_eq!(found.data, Path::new("/home/somebody/.local/state/tenure"));
    let witness = Path::new("/home/somebody/.local/state/tenure-witness");
    assert_eq!(found.ledger.witness.as_deref(), Some(witness));
    assert_eq!((found.ledger.segment_size, found.ledger.reserve), (16 << 20, 64 << 20));
    assert_eq!(found.routine, Routine::default());
    let found = configuration(&[], &[("XDG_STATE_HOME", "/var/state")], "").unwrap();
    assert_eq!(found.data, Path::new("/var/state/tenure"));
    let relative = configuration(&[], &[("XDG_STATE_HOME", "state")], "").unwrap();
    assert_eq!(relative.data, Path::new("/home/somebody/.local/state/tenure"));
}

#[test]
fn a_flag_counts_more_than_the_environment_and_that_more_than_the_file() {
    let file = "listen = '127.0.0.1:3'\n[ledger]\nsegment_size = 4096\nwitness = '/w'\n";
    let found = configuration(&[], &[], file).unwrap();
    assert_eq!((found.reach.listen.unwrap().port(), found.ledger.segment_size), (3, 4096));
    assert_eq!(found.ledger.witness.as_deref(), Some(Path::new("/w")));
    let variables = [("TENURE_LISTEN", "127.0.0.1:2"), ("TENURE_LEDGER_SEGMENT_SIZE", "8192")];
    let found = configuration(&[], &variables, file).unwrap();
    assert_eq!((found.reach.listen.unwrap().port(), found.ledger.segment_size), (2, 8192));
    let found = configuration(&[("listen", "127.0.0.1:1")], &variables, file).unwrap();
    assert_eq!(found.reach.listen.unwrap().port(), 1);
}

#[test]
fn what_does_not_exist_is_named_with_its_file() {
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
fn a_value_that_cannot_be_used_is_named_with_who_said_it() {
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
fn a_named_file_must_be_there() {
    let folders = Folders::default();
    let flags = Flags { config: Some("/nowhere/config.toml".into()), ..Flags::default() };
    let refused = Sources::new(flags, |_| None, &folders).unwrap_err();
    assert!(matches!(refused, ConfigurationError::Unreadable { .. }), "{refused}");
    let nothing = Configuration::new(&Sources::default(), &folders).unwrap_err();
    assert!(matches!(nothing, ConfigurationError::NoFolder { .. }), "{nothing}");
}

#[test]
fn the_local_socket_is_where_clients_look_for_it_unless_somebody_says_otherwise() {
    let socket = |flags: &[(&'static str, &str)], variables: &[(&str, &str)], file: &str| {
        let place = configuration(flags, variables, file).unwrap().reach.socket;
        place.map(|place| (place.path.to_str().unwrap().to_owned(), place.users, place.is_chosen))
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
fn how_the_server_is_reached_is_configured() {
    let file = "listen = 'none'\n[tls]\ncertificate = '/c'\nkey = '/k'\n\
                [http]\nhosts = ['a.example', 'b.example']\nconnections = 5\nidle_seconds = 7\n";
    let reach = configuration(&[], &[], file).unwrap().reach;
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
fn pools_have_names_of_the_users_own_choice() {
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
    let mut flags = Flags::default();
    flags.choose([("TENURE_POOLS_LAB".into(), "x,y".into()), ("TENURE_POOLS_".into(), "1".into())]);
    let sources = Sources::new(flags, |_| None, &Folders::default()).unwrap();
    let chosen: Vec<_> = sources.in_table("pools").map(|(name, value)| (name, value.text.clone())).collect();
    assert_eq!(chosen, [("lab", "x,y".into())], "one that no file names counts too");
}

#[test]
fn the_device_and_its_inputs_are_configured() {
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
fn a_device_that_cannot_be_is_refused_with_what_would_be_right() {
    for (file, wrong) in [
        ("[control]\nttl_ms = 999", "from 1000 to 3600000"),
        ("[control]\nttl_ms = 'soon'", "from 1000 to 3600000"),
        ("[control]\nheartbeat_interval_ms = 9", "10 at least"),
        ("[control]\nheartbeat_interval_ms = 5000", "before its next heartbeat"),
        ("[control]\nmillis_at_start = 4294967296", "from 0 to 4294967295"),
        ("[control]\nlease = 1", "`control.lease`"),
        ("[control.serial]\nbaud = 9600", "no `control.serial.path`"),
        ("[control.serial]\npath = '/a'\nbaud = 0", "such as 115200"),
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
fn somebody_elses_device_is_named_by_flag_or_file_and_its_table_may_be_another() {
    assert!(configuration(&[], &[], "").unwrap().control.gateway.is_none());
    let found =
        configuration(&[("control.device", "http://wled.local")], &[], "[control]\ndevice = 'http://other'");
    let found = found.unwrap().control.gateway.unwrap();
    assert_eq!(found.device.to_string(), "http://wled.local");
    assert_eq!(found.rules, tenure_control::gateway::Rules::wled());
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("lamp.rules");
    std::fs::write(&table, "reads GET /lamp\n").unwrap();
    let file =
        format!("[control]\ndevice = 'http://lamp:81'\n[control.gateway]\nrules = '{}'", table.display());
    let found = configuration(&[], &[], &file).unwrap().control.gateway.unwrap();
    assert_eq!(found.rules.len(), (1, 0));
    let named = configuration(&[], &[("TENURE_CONTROL_GATEWAY_RULES", "wled")], &file)
        .unwrap()
        .control
        .gateway
        .unwrap();
    assert_eq!(named.rules, tenure_control::gateway::Rules::wled());
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
