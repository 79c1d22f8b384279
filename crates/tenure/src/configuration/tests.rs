use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use super::*;

/// The configuration of these flags, variables and this file.
fn configuration(
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
    Configuration::new(&Sources::new(Flags { config: None, values }, variable, &folders)?, &folders)
}

#[test]
fn nobody_says_anything_and_there_are_defaults() {
    let found = configuration(&[], &[], "").unwrap();
    assert_eq!(found.listen.to_string(), "127.0.0.1:7420");
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
    assert_eq!((found.listen.port(), found.ledger.segment_size), (3, 4096));
    assert_eq!(found.ledger.witness.as_deref(), Some(Path::new("/w")));
    let variables = [("TENURE_LISTEN", "127.0.0.1:2"), ("TENURE_LEDGER_SEGMENT_SIZE", "8192")];
    let found = configuration(&[], &variables, file).unwrap();
    assert_eq!((found.listen.port(), found.ledger.segment_size), (2, 8192));
    let found = configuration(&[("listen", "127.0.0.1:1")], &variables, file).unwrap();
    assert_eq!(found.listen.port(), 1);
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
    let flags = Flags { config: Some("/nowhere/config.toml".into()), values: BTreeMap::new() };
    let refused = Sources::new(flags, |_| None, &folders).unwrap_err();
    assert!(matches!(refused, ConfigurationError::Unreadable { .. }), "{refused}");
    let nothing = Configuration::new(&Sources::default(), &folders).unwrap_err();
    assert!(matches!(nothing, ConfigurationError::NoFolder { .. }), "{nothing}");
}
