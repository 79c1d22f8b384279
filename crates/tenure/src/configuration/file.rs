//! The configuration file.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use toml::{Table, Value};

use super::{COMMANDS, ConfigurationError, FREE_TABLES, KEYS, LISTS};

/// The values of a file, by key: `[ledger] witness = …` is under `ledger.witness`.
pub fn read(path: &Path, is_required: bool) -> Result<BTreeMap<String, String>, ConfigurationError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_required => return Ok(BTreeMap::new()),
        Err(source) => return Err(ConfigurationError::Unreadable { path: path.into(), source }),
    };
    let table: Table = text.parse().map_err(|error: toml::de::Error| ConfigurationError::NotToml {
        path: path.into(),
        reason: error.to_string().trim_end().to_owned(),
    })?;
    let mut values = BTreeMap::new();
    collect(path, "", &table, &mut values)?;
    Ok(values)
}

fn collect(
    path: &Path,
    prefix: &str,
    table: &Table,
    values: &mut BTreeMap<String, String>,
) -> Result<(), ConfigurationError> {
    for (name, value) in table {
        let key = format!("{prefix}{name}");
        match value {
            Value::Table(inner) if is_table(&key) => collect(path, &format!("{key}."), inner, values)?,
            _ if !is_key(&key) => {
                return Err(ConfigurationError::UnknownKey { key, path: path.into() });
            }
            Value::String(text) => drop(values.insert(key, text.clone())),
            Value::Integer(number) => drop(values.insert(key, number.to_string())),
            Value::Boolean(flag) => drop(values.insert(key, flag.to_string())),
            // As JSON: the arguments of a program may hold anything.
            Value::Array(list) if COMMANDS.contains(&key.as_str()) => {
                let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
                let text = texts.and_then(|texts| serde_json::to_string(&texts).ok());
                values.insert(key, text.unwrap_or_else(|| "array".to_owned()));
            }
            Value::Array(list) if is_list(&key) => {
                let texts: Option<Vec<_>> = list.iter().map(text_of).collect();
                let texts = texts.ok_or_else(|| ConfigurationError::BadValue {
                    origin: format!("`{key}` in {}", path.display()),
                    value: "array".to_owned(),
                    expected: "a list of strings without commas, or of whole numbers",
                })?;
                values.insert(key, texts.join(","));
            }
            other => {
                return Err(ConfigurationError::BadValue {
                    origin: format!("`{key}` in {}", path.display()),
                    value: other.type_str().to_owned(),
                    expected: "a string, a whole number, true or false",
                });
            }
        }
    }
    Ok(())
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.contains(',') => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}

fn is_key(key: &str) -> bool {
    KEYS.contains(&key) || is_free(key)
}

fn is_list(key: &str) -> bool {
    LISTS.contains(&key) || is_free(key)
}

/// Whether this is in a table whose keys anybody may choose.
fn is_free(key: &str) -> bool {
    key.split_once('.').is_some_and(|(table, _)| FREE_TABLES.contains(&table))
}

fn is_table(key: &str) -> bool {
    if FREE_TABLES.contains(&key) {
        return true;
    }
    KEYS.iter().any(|known| known.strip_prefix(key).is_some_and(|rest| rest.starts_with('.')))
}
