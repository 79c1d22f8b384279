//! What outlives a restart, and how it is written down.
//!
//! The form has a version. A program that finds one it does not know stops: to guess would be to lose what is there.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::firmware::FirmwareInfo;
use crate::light::{Presets, Settings};

pub const VERSION: u64 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StateFile", into = "StateFile")]
pub struct PersistentState {
    pub settings: Settings,
    pub presets: Presets,
    pub firmware: FirmwareInfo,
    /// What runs from the next start on.
    pub next_firmware: Option<FirmwareInfo>,
}

impl Default for PersistentState {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            presets: Presets::default(),
            firmware: FirmwareInfo::built_in(),
            next_firmware: None,
        }
    }
}

/// Why a text is not what this program stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PersistentStateError {
    /// Another program wrote it, most likely a newer one.
    UnknownVersion(u64),
    /// It is not as any program wrote it.
    Damaged(String),
}

impl fmt::Display for PersistentStateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownVersion(version) => write!(
                formatter,
                "it has version {version}, and this program knows only version {VERSION}; start the newer program that wrote it"
            ),
            Self::Damaged(what) => write!(formatter, "it is damaged ({what})"),
        }
    }
}

impl std::error::Error for PersistentStateError {}

impl PersistentState {
    /// Reads what was written.
    ///
    /// ```
    /// use tenure_device::{PersistentState, PersistentStateError};
    /// assert_eq!(PersistentState::from_json(&PersistentState::default().to_json()), Ok(PersistentState::default()));
    /// assert_eq!(PersistentState::from_json(r#"{"version": 9}"#), Err(PersistentStateError::UnknownVersion(9)));
    /// ```
    pub fn from_json(text: &str) -> Result<Self, PersistentStateError> {
        let value: Value = serde_json::from_str(text).map_err(|error| syntax_error(&error))?;
        let version = value.get("version").and_then(Value::as_u64);
        match version {
            Some(VERSION) => {}
            Some(other) => return Err(PersistentStateError::UnknownVersion(other)),
            None => return Err(PersistentStateError::Damaged("it says no version".to_owned())),
        }
        serde_json::from_value(value).map_err(|error| PersistentStateError::Damaged(error.to_string()))
    }

    /// Writes it for people to read too.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("names and numbers always become JSON")
    }

    fn check(&self) -> Result<(), &'static str> {
        self.settings.check()?;
        self.presets.check()
    }
}

fn syntax_error(error: &serde_json::Error) -> PersistentStateError {
    PersistentStateError::Damaged(format!("no JSON at line {}, column {}", error.line(), error.column()))
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StateFile {
    version: u64,
    settings: Settings,
    presets: Presets,
    firmware: FirmwareInfo,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_firmware: Option<FirmwareInfo>,
}

impl From<PersistentState> for StateFile {
    fn from(stored: PersistentState) -> Self {
        let PersistentState { settings, presets, firmware, next_firmware } = stored;
        Self { version: VERSION, settings, presets, firmware, next_firmware }
    }
}

impl TryFrom<StateFile> for PersistentState {
    type Error = String;

    fn try_from(form: StateFile) -> Result<Self, Self::Error> {
        if form.version != VERSION {
            return Err(PersistentStateError::UnknownVersion(form.version).to_string());
        }
        let StateFile { settings, presets, firmware, next_firmware, .. } = form;
        let stored = Self { settings, presets, firmware, next_firmware };
        stored.check()?;
        Ok(stored)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(change: impl FnOnce(&mut Value)) -> Result<PersistentState, PersistentStateError> {
        let mut value = serde_json::to_value(PersistentState::default()).expect("it becomes JSON");
        change(&mut value);
        PersistentState::from_json(&value.to_string())
    }

    #[test]
    fn invalid_state_files_are_rejected_as_damaged() {
        let wrong: [fn(&mut Value); 9] = [
            |value| value["settings"]["maxFps"] = json!(0),
            |value| value["settings"]["deviceName"] = json!(""),
            |value| value["settings"]["brightnessLimit"] = json!(0),
            |value| value["settings"]["powerOnEffect"] = json!("no such"),
            |value| value["settings"]["more"] = json!(1),
            |value| value["presets"] = json!({}),
            |value| value["presets"] = json!([1]),
            |value| value["version"] = json!("1"),
            |value| value["more"] = json!(1),
        ];
        for (number, wrong) in wrong.into_iter().enumerate() {
            assert!(matches!(changed(wrong), Err(PersistentStateError::Damaged(_))), "number {number}");
        }
        assert!(changed(|_| ()).is_ok());
        for text in ["", "{", "[]", "null", "{}"] {
            assert!(
                matches!(PersistentState::from_json(text), Err(PersistentStateError::Damaged(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn an_unknown_version_is_rejected_with_a_hint() {
        let error = changed(|value| value["version"] = json!(2)).expect_err("it is not known");
        assert_eq!(error, PersistentStateError::UnknownVersion(2));
        assert!(error.to_string().contains("start the newer program"));
    }
}
