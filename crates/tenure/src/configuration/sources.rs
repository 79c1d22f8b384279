//! Who said what, and whose word counts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use super::{ConfigurationError, FREE_TABLES, Folders, KEYS, file};

/// What the command line says, by key.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// Values by key.
    pub values: BTreeMap<&'static str, OsString>,
    /// What the environment says in tables whose keys anybody may choose.
    pub chosen: BTreeMap<String, OsString>,
}

impl Flags {
    /// Takes from these variables of the environment what belongs into tables whose keys anybody may choose:
    /// `TENURE_POOLS_TUNER` is `tuner` in `[pools]`.
    pub fn choose(&mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) {
        for (name, text) in variables {
            let Some(name) = name.to_str() else { continue };
            for table in FREE_TABLES {
                let prefix = variable_of(table) + "_";
                let chosen = name.strip_prefix(&prefix).filter(|chosen| !chosen.is_empty());
                let key = chosen.map(|chosen| format!("{table}.{}", chosen.to_ascii_lowercase()));
                self.chosen.extend(key.map(|key| (key, text.clone())));
            }
        }
    }
}

/// Keys that the environment has under another name too, which others gave them.
const OTHER_NAMES: &[(&str, &str)] = &[("intents.api_leases", "XG2G_V3_API_LEASES")];

/// What somebody said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// What.
    pub text: OsString,
    /// Where: for messages.
    pub origin: String,
}

/// The word that counts for each key.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Of the keys that everybody has.
    values: BTreeMap<&'static str, Value>,
    /// Of those that somebody chose, by table and key.
    chosen: BTreeMap<String, Value>,
}

impl Sources {
    /// Flags over the environment over a file.
    pub fn new(
        flags: Flags,
        variable: impl Fn(&str) -> Option<OsString>,
        folders: &Folders,
    ) -> Result<Self, ConfigurationError> {
        let named = flags.config.or_else(|| variable("TENURE_CONFIG").map(PathBuf::from));
        let path = named.clone().or_else(|| folders.config_file());
        let in_file = path.as_ref().map(|path| file::read(path, named.is_some())).transpose()?;
        let mut in_file = in_file.unwrap_or_default();
        let mut values = BTreeMap::new();
        for key in KEYS {
            let flag = || Some((flags.values.get(key)?.clone(), flag_of(key)));
            let name = variable_of(key);
            let of_old = || OTHER_NAMES.iter().find(|(known, _)| known == key).map(|(_, other)| *other);
            let by_other_name = || Some((variable(of_old()?)?, of_old()?.to_owned()));
            let said = || variable(&name).map(|text| (text, name.clone())).or_else(by_other_name);
            let read = in_file.remove(*key);
            let written = || {
                let path = path.as_ref()?;
                Some((OsString::from(read?), format!("`{key}` in {}", path.display())))
            };
            if let Some((text, origin)) = flag().or_else(said).or_else(written) {
                values.insert(*key, Value { text, origin });
            }
        }
        // What is left was in tables whose keys anybody may choose.
        let mut chosen = BTreeMap::new();
        for (key, text) in in_file {
            let name = variable_of(&key);
            let path = path.as_ref().map_or_else(String::new, |path| path.display().to_string());
            let written = (OsString::from(text), format!("`{key}` in {path}"));
            let (text, origin) = variable(&name).map_or(written, |text| (text, name));
            chosen.insert(key, Value { text, origin });
        }
        for (key, text) in flags.chosen {
            chosen.entry(key).or_insert_with_key(|key| Value { text, origin: variable_of(key) });
        }
        Ok(Self { values, chosen })
    }

    /// What was said about `key`.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.values.get(key).cloned()
    }

    /// What was said in a table whose keys anybody may choose, by key.
    pub fn in_table(&self, table: &str) -> impl Iterator<Item = (&str, &Value)> {
        self.chosen.iter().filter_map(move |(key, value)| {
            let (found, name) = key.split_once('.')?;
            (found == table).then_some((name, value))
        })
    }

    /// What was said about `key`, as something else than text.
    pub fn parse<T: FromStr>(
        &self,
        key: &str,
        expected: &'static str,
    ) -> Result<Option<T>, ConfigurationError> {
        let Some(Value { text, origin }) = self.get(key) else { return Ok(None) };
        let value = text.to_string_lossy().into_owned();
        match value.parse() {
            Ok(parsed) => Ok(Some(parsed)),
            Err(_) => Err(ConfigurationError::BadValue { origin, value, expected }),
        }
    }

    /// What was said about `key`, which is yes or no.
    pub fn switch(&self, key: &str) -> Result<Option<bool>, ConfigurationError> {
        let Some(Value { text, origin }) = self.get(key) else { return Ok(None) };
        let value = text.to_string_lossy().into_owned();
        match value.to_ascii_lowercase().as_str() {
            "true" | "1" | "on" | "yes" => Ok(Some(true)),
            "false" | "0" | "off" | "no" => Ok(Some(false)),
            _ => Err(ConfigurationError::BadValue { origin, value, expected: "true or false" }),
        }
    }

    /// What was said about `key`, if `fits` finds it right.
    pub fn parse_if<T: FromStr>(
        &self,
        key: &str,
        expected: &'static str,
        fits: impl FnOnce(&T) -> bool,
    ) -> Result<Option<T>, ConfigurationError> {
        let Some(parsed) = self.parse(key, expected)? else { return Ok(None) };
        if fits(&parsed) {
            return Ok(Some(parsed));
        }
        let Value { text, origin } = self.get(key).expect("it was parsed");
        let value = text.to_string_lossy().into_owned();
        Err(ConfigurationError::BadValue { origin, value, expected })
    }

    /// What was said about `key`, which is a list.
    pub fn list<T: FromStr>(&self, key: &str, expected: &'static str) -> Result<Vec<T>, ConfigurationError> {
        let Some(Value { text, origin }) = self.get(key) else { return Ok(Vec::new()) };
        let value = text.to_string_lossy().into_owned();
        let parts = value.split(',').map(str::trim).filter(|part| !part.is_empty());
        let parsed: Result<_, _> = parts.map(str::parse).collect();
        parsed.map_err(|_| ConfigurationError::BadValue { origin, value: value.clone(), expected })
    }
}

/// The flag of a key: its last part.
fn flag_of(key: &str) -> String {
    format!("--{}", key.rsplit('.').next().unwrap_or(key))
}

/// The environment's name of a key.
fn variable_of(key: &str) -> String {
    format!("TENURE_{}", key.replace('.', "_").to_ascii_uppercase())
}
