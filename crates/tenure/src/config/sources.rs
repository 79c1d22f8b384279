//! Merges flags, environment and file, and remembers where each value was set.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fs, io};

use toml::de::{DeTable, DeValue};

use super::keys::{AllowedValues, KEYS, POOLS, allowed_values, environment_variable_of, is_table};
use super::{ConfigurationError, Folders};

/// Keys that have a second name in the environment. The first name counts more.
const VARIABLE_ALIASES: &[(&str, &str)] = &[("intents.api_leases", "XG2G_V3_API_LEASES")];

/// What the command line says.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// Values by key.
    pub values: BTreeMap<&'static str, OsString>,
}

/// Variables of the environment by name.
pub type EnvironmentVariables = BTreeMap<OsString, OsString>;

/// The value of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigurationValue {
    /// As text. A path need not be UTF-8.
    pub text: OsString,
    /// Where it was set: a flag, a variable, or a key with its file and line.
    pub origin: String,
}

impl ConfigurationValue {
    /// The same as a path.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(&self.text)
    }
}

/// The value that counts for each key.
#[derive(Debug, Clone, Default)]
pub struct MergedValues(BTreeMap<String, ConfigurationValue>);

impl MergedValues {
    /// Flags override the environment, which overrides the file.
    pub fn new(
        flags: Flags,
        variables: &EnvironmentVariables,
        folders: &Folders,
    ) -> Result<Self, ConfigurationError> {
        let variable = |name: &str| variables.get(name.as_ref() as &std::ffi::OsStr).cloned();
        let named = flags.config.or_else(|| variable("TENURE_CONFIG").map(PathBuf::from));
        let mut sources = Self::default();
        if let Some(path) = named.clone().or_else(|| folders.config_file()) {
            sources.read(&path, named.is_some())?;
        }
        let aliases = VARIABLE_ALIASES.iter().map(|(key, name)| ((*key).to_owned(), (*name).to_owned()));
        let known = KEYS.iter().map(|(key, _)| (*key).to_owned()).chain(sources.0.keys().cloned());
        let prefix = environment_variable_of(POOLS) + "_";
        let pools = variables.keys().filter_map(|name| name.to_str()?.strip_prefix(&prefix));
        let pools = pools.filter(|pool| !pool.is_empty());
        let pools = pools.map(|pool| format!("{POOLS}.{}", pool.to_ascii_lowercase()));
        let named: Vec<_> = aliases
            .chain(known.chain(pools).map(|key| (key.clone(), environment_variable_of(&key))))
            .collect();
        for (key, origin) in named {
            sources.0.extend(variable(&origin).map(|text| (key, ConfigurationValue { text, origin })));
        }
        for (key, text) in flags.values {
            let origin = format!("--{}", key.rsplit('.').next().unwrap_or(key));
            sources.0.insert(key.to_owned(), ConfigurationValue { text, origin });
        }
        Ok(sources)
    }

    /// Reads a file. Unless it was named, it may be missing.
    fn read(&mut self, path: &Path, is_named: bool) -> Result<(), ConfigurationError> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_named => return Ok(()),
            text => text.map_err(|error| {
                let path = path.display();
                let message = format!("{path} cannot be read; choose another with --config, or leave it out");
                ConfigurationError::because(message, error)
            })?,
        };
        let table = DeTable::parse(&text).map_err(|error| {
            ConfigurationError::new(format!(
                "{} is not TOML: {}",
                path.display(),
                error.to_string().trim_end()
            ))
        })?;
        self.collect("", table.get_ref(), &|start| {
            format!("{}:{}", path.display(), text[..start].matches('\n').count() + 1)
        })
    }

    fn collect(
        &mut self,
        prefix: &str,
        table: &DeTable<'_>,
        place: &impl Fn(usize) -> String,
    ) -> Result<(), ConfigurationError> {
        for (name, value) in table {
            let key = format!("{prefix}{}", name.get_ref());
            let place_of_key = place(name.span().start);
            let origin = format!("`{key}` in {place_of_key}");
            let text = match (value.get_ref(), allowed_values(&key)) {
                (DeValue::Table(nested), _) if is_table(&key) => {
                    self.collect(&format!("{key}."), nested, place)?;
                    continue;
                }
                (_, None) => {
                    let known: Vec<_> = KEYS.iter().map(|(key, _)| *key).collect();
                    return Err(ConfigurationError::new(format!(
                        "{place_of_key} has the key `{key}`, which does not exist; there are: {}",
                        known.join(", ")
                    )));
                }
                (DeValue::Array(list), Some(AllowedValues::Command)) => {
                    let texts: Option<Vec<_>> = list.iter().map(|part| part.get_ref().as_str()).collect();
                    texts
                        .and_then(|texts| serde_json::to_string(&texts).ok())
                        .unwrap_or_else(|| "array".to_owned())
                }
                (DeValue::Array(list), Some(AllowedValues::List(_))) => {
                    let texts =
                        list.iter().map(|part| text_of(part.get_ref()).filter(|text| !text.contains(',')));
                    let texts: Option<Vec<_>> = texts.collect();
                    let expected = "a list of strings without commas, or of whole numbers";
                    texts.ok_or_else(|| rejected(&origin, "array", &expected))?.join(",")
                }
                (DeValue::Boolean(flag), _) => flag.to_string(),
                (value, _) => text_of(value).ok_or_else(|| {
                    rejected(&origin, value.type_str(), &"a string, a whole number, true or false")
                })?,
            };
            self.0.insert(key, ConfigurationValue { text: text.into(), origin });
        }
        Ok(())
    }

    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&ConfigurationValue> {
        self.0.get(key)
    }

    /// The pools by name.
    pub fn pools(&self) -> impl Iterator<Item = (&str, &ConfigurationValue)> {
        self.0.iter().filter_map(|(key, value)| {
            let (table, name) = key.split_once('.')?;
            (table == POOLS).then_some((name, value))
        })
    }

    /// The value of `key` as `read` understands it. `None` from `read` rejects it.
    pub fn read_as<T>(
        &self,
        key: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ConfigurationError> {
        let Some(ConfigurationValue { text, origin }) = self.get(key) else { return Ok(None) };
        let text = text.to_string_lossy();
        let expected = allowed_values(key).expect("keys are read by names from the table");
        read(&text).map(Some).ok_or_else(|| rejected(origin, &text, &expected))
    }

    /// The value of `key`, parsed.
    pub fn parse<T: FromStr>(&self, key: &str) -> Result<Option<T>, ConfigurationError> {
        self.read_as(key, |text| text.parse().ok())
    }

    /// The number of `key`, within the bounds of the key and of `T`.
    pub fn number<T: TryFrom<u64>>(&self, key: &str) -> Result<Option<T>, ConfigurationError> {
        let Some(AllowedValues::Number(_, min, max)) = allowed_values(key) else {
            unreachable!("{key} is a number")
        };
        self.read_as(key, |text| {
            let number = text.parse().ok().filter(|number| (min..=max).contains(number))?;
            T::try_from(number).ok()
        })
    }

    /// The number of `key`, or else `default`.
    pub fn number_or<T: TryFrom<u64>>(&self, key: &str, default: T) -> Result<T, ConfigurationError> {
        Ok(self.number(key)?.unwrap_or(default))
    }

    /// Whether `key` has the word `chosen`, one of those that it accepts.
    pub fn value_is(&self, key: &str, chosen: &str) -> Result<Option<bool>, ConfigurationError> {
        let Some(AllowedValues::OneOf(words)) = allowed_values(key) else {
            unreachable!("{key} is a choice")
        };
        self.read_as(key, |text| words.contains(&text).then_some(text == chosen))
    }

    /// The value of `key`, which is yes or no.
    pub fn boolean(&self, key: &str) -> Result<Option<bool>, ConfigurationError> {
        self.read_as(key, |text| match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "on" | "yes" => Some(true),
            "false" | "0" | "off" | "no" => Some(false),
            _ => None,
        })
    }

    /// The list of `key`.
    pub fn list<T: FromStr>(&self, key: &str) -> Result<Option<Vec<T>>, ConfigurationError> {
        self.read_as(key, |text| {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(|part| part.parse().ok()).collect()
        })
    }
}

fn text_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.clone().into_owned()),
        DeValue::Integer(number) => {
            Some(i64::from_str_radix(number.as_str(), number.radix()).ok()?.to_string())
        }
        _ => None,
    }
}

fn rejected(origin: &str, value: &str, expected: &dyn std::fmt::Display) -> ConfigurationError {
    ConfigurationError::new(format!("{origin} is {value:?}, which is not {expected}"))
}
