//! What an agent touches and what it does to it, as models say it.

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Value, json};
use tenure_api::{ManifestIntent, ManifestObject, ResourceAccess};

use super::error::ToolError;
use super::path_resolver::PathResolver;

/// One thing, and what is done to it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceArgument {
    path: Option<String>,
    resource_type: Option<String>,
    resource: Option<String>,
    action: Option<String>,
    predicate: Option<String>,
}

/// What models say, and what it is called in a manifest. A file that is made is kept from everybody, like one that is
/// changed: whoever makes it goes on to change it.
const ACTIONS: [(&str, &str); 8] = [
    ("edit", "MUTATES"),
    ("write", "MUTATES"),
    ("create", "MUTATES"),
    ("delete", "DELETES"),
    ("rename", "RENAMES"),
    ("read", "CONSUMES"),
    ("depend", "DEPENDS_ON"),
    ("provide", "PROVIDES"),
];
const PREDICATES: [&str; 6] = ["PROVIDES", "CONSUMES", "DEPENDS_ON", "MUTATES", "DELETES", "RENAMES"];
const FILE: &str = "FILE";
const TYPES: [&str; 5] = [FILE, "SYMBOL", "API_ENDPOINT", "DATABASE_TABLE", "CONFIG_KEY"];

impl ResourceArgument {
    /// What it is about, of whatever kind.
    pub fn object(&self, places: &PathResolver) -> Result<ManifestObject, ToolError> {
        let (resource_type, path) = match (&self.resource, &self.path) {
            (Some(resource), None) if self.resource_type.is_none() => {
                resource.split_once(':').ok_or_else(|| {
                    ToolError::invalid_argument("`resource` is TYPE:path, such as FILE:/srv/app/src/lib.rs")
                })?
            }
            (None, Some(path)) => (self.resource_type.as_deref().unwrap_or(FILE), path.as_str()),
            _ => {
                return Err(ToolError::invalid_argument(
                    "each entry names either `path` (with `resource_type`, if it is no file) or `resource`",
                ));
            }
        };
        if !TYPES.contains(&resource_type) {
            return Err(ToolError::invalid_argument(&format!(
                "the type of a resource is one of {}",
                TYPES.join(", ")
            )));
        }
        if path.is_empty() {
            return Err(ToolError::invalid_argument(
                "a path has at least one letter; `.` means the whole project",
            ));
        }
        // A name that an answer gave is a name already.
        let path = if resource_type == FILE && self.resource.is_none() {
            places.resource_name(path)
        } else {
            path.to_owned()
        };
        Ok(ManifestObject { resource_type: resource_type.to_owned(), path })
    }

    fn predicate(&self) -> Result<&'static str, ToolError> {
        let one_of = |names: &[&str]| names.join(", ");
        match (&self.action, &self.predicate) {
            (None, None) => Ok("MUTATES"),
            (Some(action), None) => {
                let known = ACTIONS.iter().find(|(name, _)| name == action).map(|(_, predicate)| *predicate);
                let names = ACTIONS.map(|(name, _)| name);
                known.ok_or_else(|| {
                    ToolError::invalid_argument(&format!("`action` is one of {}", one_of(&names)))
                })
            }
            (None, Some(predicate)) => {
                let known = PREDICATES.into_iter().find(|name| name == predicate);
                known.ok_or_else(|| {
                    ToolError::invalid_argument(&format!("`predicate` is one of {}", one_of(&PREDICATES)))
                })
            }
            _ => Err(ToolError::invalid_argument("an entry has `action` or `predicate`, not both")),
        }
    }

    pub fn intent(&self, places: &PathResolver) -> Result<ManifestIntent, ToolError> {
        Ok(ManifestIntent {
            id: None,
            subject: None,
            predicate: self.predicate()?.to_owned(),
            object: self.object(places)?,
            timestamp: None,
            confidence: None,
            session_id: None,
        })
    }

    /// The same where it is looked at afterwards.
    pub fn requested_resource(&self, places: &PathResolver) -> Result<ResourceAccess, ToolError> {
        Ok(ResourceAccess {
            resource: resource_name(&self.object(places)?),
            predicate: self.predicate()?.to_owned(),
        })
    }

    /// What a model is told about it.
    pub fn schema() -> Value {
        let mut properties = Self::object_properties();
        properties.insert(
            "action".into(),
            json!({"type": "string", "enum": ACTIONS.map(|(name, _)| name), "description":
                "What you do to it; `edit` if you leave it out. `read`: you rely on what it says while you work, and \
                 others may read it too. For `rename`, list the old path and the new one."}),
        );
        properties.insert(
            "predicate".into(),
            json!({"type": "string", "enum": PREDICATES, "description":
                "Instead of `action`, the exact word of the protocol."}),
        );
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    }

    /// How a thing is named, without what is done to it.
    pub fn object_properties() -> JsonObject {
        let properties = json!({
            "path": {"type": "string", "description":
                "A file, a folder with `/` at its end (everything below it), or a pattern such as src/*.rs. Relative \
                 to the project's folder, or absolute."},
            "resource_type": {"type": "string", "enum": TYPES, "description":
                "What `path` names; FILE if you leave it out."},
            "resource": {"type": "string", "description":
                "Instead of `path`: TYPE:path, exactly as another answer named it."},
        });
        match properties {
            Value::Object(properties) => properties,
            _ => JsonObject::new(),
        }
    }
}

pub fn resource_name(object: &ManifestObject) -> String {
    format!("{}:{}", object.resource_type, object.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touching(value: Value) -> Result<ResourceAccess, String> {
        let touching: ResourceArgument = serde_json::from_value(value).map_err(|error| error.to_string())?;
        touching.requested_resource(&PathResolver::Remote).map_err(|refused| refused.text().to_owned())
    }

    #[test]
    fn resource_arguments_are_parsed() {
        for (argument, resource, predicate) in [
            (json!({"path": "./a.rs"}), "FILE:a.rs", "MUTATES"),
            (json!({"path": "a.rs", "action": "create"}), "FILE:a.rs", "MUTATES"),
            (json!({"path": "src/", "action": "read"}), "FILE:src/", "CONSUMES"),
            (
                json!({"path": "users", "resource_type": "DATABASE_TABLE", "predicate": "PROVIDES"}),
                "DATABASE_TABLE:users",
                "PROVIDES",
            ),
            (json!({"resource": "FILE:./a", "action": "delete"}), "FILE:./a", "DELETES"),
        ] {
            assert_eq!(
                touching(argument.clone()),
                Ok(ResourceAccess { resource: resource.into(), predicate: predicate.into() }),
                "{argument}"
            );
        }
    }

    #[test]
    fn invalid_resource_argument_is_rejected_with_what_is_allowed() {
        for (argument, hint) in [
            (json!({"path": "a", "action": "burn"}), "edit"),
            (json!({"path": "a", "predicate": "BURNS"}), "MUTATES"),
            (json!({"path": "a", "action": "edit", "predicate": "MUTATES"}), "not both"),
            (json!({"path": "a", "resource": "FILE:a"}), "either"),
            (json!({"path": ""}), "letter"),
            (json!({}), "either"),
            (json!({"resource": "a"}), "TYPE:path"),
            (json!({"resource": "TUNER:1"}), "SYMBOL"),
        ] {
            let refused = touching(argument.clone()).unwrap_err();
            assert!(
                refused.contains(hint) && !refused.to_lowercase().contains("burn"),
                "{argument}: {refused}"
            );
        }
    }
}
