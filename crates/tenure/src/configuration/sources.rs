//! Who said what, and whose word counts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use super::{ConfigurationError, Folders, KEYS, file};

/// What the command line says, by key.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// Values by key.
    pub values: BTreeMap<&'static str, OsString>,
}

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
pub struct Sources(BTreeMap<&'static str, Value>);

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
            let flag = || Some((flags.values.get(key)?.clone(), format!("--{key}")));
            let name = variable_of(key);
            let said = || variable(&name).map(|text| (text, name.clone()));
            let read = in_file.remove(*key);
            let written = || {
                let path = path.as_ref()?;
                Some((OsString::from(read?), format!("`{key}` in {}", path.display())))
            };
            if let Some((text, origin)) = flag().or_else(said).or_else(written) {
                values.insert(*key, Value { text, origin });
            }
        }
        Ok(Self(values))
    }

    /// What was said about `key`.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.0.get(key).cloned()
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

    /// What was said about `key`, which is a list.
    pub fn list<T: FromStr>(&self, key: &str, expected: &'static str) -> Result<Vec<T>, ConfigurationError> {
        let Some(Value { text, origin }) = self.get(key) else { return Ok(Vec::new()) };
        let value = text.to_string_lossy().into_owned();
        let parts = value.split(',').map(str::trim).filter(|part| !part.is_empty());
        let parsed: Result<_, _> = parts.map(str::parse).collect();
        parsed.map_err(|_| ConfigurationError::BadValue { origin, value: value.clone(), expected })
    }
}

/// The environment's name of a key.
fn variable_of(key: &str) -> String {
    format!("TENURE_{}", key.replace('.', "_").to_ascii_uppercase())
}
