//! Arguments of tools, and the instructions for models.

use std::path::{Component, Path, PathBuf};

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Value, json};
use tenure_api::{AgentLease, AgentLeaseIds, ManifestIntent, ManifestObject, ResourceAccess};
use tenure_client::{Client, Code};

use super::response::ToolError;

/// The description of a tool's arguments.
///
/// `agent_id` is required where there is no default for it.
pub fn schema(properties: Value, required: &[&str], has_agent: bool) -> JsonObject {
    let mut properties = match properties {
        Value::Object(properties) => properties,
        _ => JsonObject::new(),
    };
    let usual = if has_agent { " Leave it out to be the agent that your user named." } else { "" };
    properties.insert(
        "agent_id".into(),
        json!({"type": "string", "minLength": 1, "maxLength": 256, "description": format!(
            "Who you are: a name that no other agent has, the same in every call.{usual}")}),
    );
    let mut required = required.to_vec();
    if !has_agent {
        required.push("agent_id");
    }
    let whole = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false
    });
    match whole {
        Value::Object(whole) => whole,
        _ => JsonObject::new(),
    }
}

/// How a session is named, for the tools that need one.
pub fn session_property() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 256, "description":
        "What you work on, in a word. Leave it out unless your user named one."})
}

pub fn leases_property(without: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "maxItems": 1_024, "description":
        format!("The ids of leases, as `declare` gave them. {without}")})
}

pub async fn held_leases(client: &Client, agent: &str) -> Result<Vec<AgentLease>, ToolError> {
    match client.agent(agent).await {
        Ok(view) => Ok(view.leases),
        Err(error) if error.code() == Some(Code::NotFound) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// The leases that are meant: those that are named, else all that the agent has.
pub async fn selected_leases(
    client: &Client,
    agent: &str,
    named: Option<Vec<String>>,
) -> Result<AgentLeaseIds, ToolError> {
    let lease_ids = match named {
        Some(named) => named,
        None => held_leases(client, agent).await?.into_iter().map(|lease| lease.id).collect(),
    };
    Ok(AgentLeaseIds { agent_id: agent.to_owned(), lease_ids })
}

/// Goes to every client with the answer to its first request. Models read it as part of their instructions, so each line
/// says what to do and when.
pub const INSTRUCTIONS: &str = "\
Tenure says who may touch which file, until when. Several agents work here at once; these tools keep them apart.
1. Before you edit, create, delete or rename anything, call `declare` ONCE with the whole list of what you are about to \
touch. You get all of it or nothing.
2. GRANTED: work, on exactly what you declared. Call `heartbeat` at least every third of the lease's time; what runs out \
is no longer yours.
3. WAIT: somebody younger has it, and you are in line. Touch nothing of the list. Do something else, and call \
`declare` with the same list again after the time that you were told.
4. DIE: somebody older has it. Touch nothing of the list, and stop touching what `ended` names: it is no longer yours. \
Call `declare` with the same list again after the time that you were told.
5. You find that you need more: call `declare` with what is new, before you touch it. It adds, and gives nothing back.
6. A heartbeat is rejected, or a tool fails: assume that the lease is lost. Stop, call `status`, and declare anew.
7. When something is done, `release` it; when all is done, `report` the state COMPLETED (or ABORTED): that releases \
everything and ends every wait.
8. `report` what you touched, too: what you had no lease for is named, and has to be undone or declared.
9. `who` says who has a file and who waits for it; `status` says what you have. Neither changes anything.
10. Keep one agent_id from the first call to the last. Nothing here depends on the connection.";

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

/// How paths become names of resources.
#[derive(Debug, Clone)]
pub enum PathResolver {
    /// The files are on this machine: a path starts here, and its links are followed.
    Local {
        folder: PathBuf,
        /// What lies below is named from there on. Without it, names are whole paths.
        root: Option<PathBuf>,
    },
    /// The files are wherever the caller is: a path is taken as it is said.
    Remote,
}

impl PathResolver {
    /// Paths of this machine, from `folder` on.
    pub fn local(folder: &Path, root: Option<&Path>) -> Self {
        Self::Local { folder: real(folder), root: root.map(|root| real(&folder.join(root))) }
    }

    /// The path as it stands in a resource's name. What ends with `/` means everything below, and so does a folder that
    /// is there.
    pub fn resource_name(&self, path: &str) -> String {
        let means_all = path.ends_with('/');
        match self {
            Self::Remote => with_end(&plain(Path::new(path)), means_all),
            Self::Local { folder, root } => {
                let whole = real(&folder.join(path));
                let means_all = means_all || whole.is_dir();
                let named = match root.as_ref().and_then(|root| whole.strip_prefix(root).ok()) {
                    Some(rest) => rest,
                    None => &whole,
                };
                with_end(named, means_all)
            }
        }
    }
}

fn with_end(path: &Path, means_all: bool) -> String {
    // The root itself has no name; a pattern says what is meant.
    if path.as_os_str().is_empty() {
        return "*".to_owned();
    }
    let mut name = path.to_string_lossy().into_owned();
    if means_all && !name.ends_with('/') {
        name.push('/');
    }
    name
}

/// Without `.` and `..`, as far as the path itself tells.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some_and(|name| name != "..") => {
                plain.pop();
            }
            Component::ParentDir if plain.has_root() => {}
            part => plain.push(part),
        }
    }
    plain
}

/// With its links followed, as far as it exists, part by part as the system does: `..` after a link leads to where the link
/// leads, not to where it lies. A file that is about to be made has no link yet, its folder may have.
fn real(path: &Path) -> PathBuf {
    let mut real = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            // What is there has no link in it any more.
            Component::ParentDir => {
                real.pop();
            }
            part => {
                real.push(part);
                real = real.canonicalize().unwrap_or(real);
            }
        }
    }
    real
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

    #[test]
    fn paths_to_one_file_have_one_resource_name() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("project/src")).unwrap();
        std::os::unix::fs::symlink(top.join("project"), top.join("link")).unwrap();
        let places = PathResolver::local(&top.join("project"), None);
        let whole = format!("{}/project/src/lib.rs", top.display());
        for input in ["src/lib.rs", "./src/lib.rs", "src/../src//lib.rs", "../link/src/lib.rs", &whole] {
            assert_eq!(places.resource_name(input), whole, "{input}");
        }
        // `link/..` is where the link leads to, for whoever writes the file.
        std::os::unix::fs::symlink(top.join("project/src"), top.join("inside")).unwrap();
        assert_eq!(places.resource_name("../inside/../lib.rs"), format!("{}/project/lib.rs", top.display()));
        assert_eq!(
            places.resource_name("new/../src/lib.rs"),
            whole,
            "what is not there yet leads nowhere else"
        );
        let below = PathResolver::local(&top.join("project/src"), Some(Path::new("..")));
        for input in ["lib.rs", &whole, "../../link/src/lib.rs"] {
            assert_eq!(below.resource_name(input), "src/lib.rs", "{input}");
        }
        assert_eq!(
            below.resource_name("/elsewhere/a"),
            "/elsewhere/a",
            "what is not below the root keeps its name"
        );
    }

    #[test]
    fn path_of_a_folder_names_everything_below_it() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("src")).unwrap();
        let places = PathResolver::local(&top, Some(&top));
        assert_eq!(places.resource_name("src"), "src/", "it is there");
        assert_eq!(places.resource_name("new/"), "new/", "it will be");
        assert_eq!(places.resource_name("new"), "new", "nobody knows");
        assert_eq!(places.resource_name("src/*.rs"), "src/*.rs");
        assert_eq!(places.resource_name("."), "*");
    }

    #[test]
    fn remote_paths_are_only_normalised() {
        for (input, name) in [
            ("./src/lib.rs", "src/lib.rs"),
            ("src/", "src/"),
            ("/a/../b", "/b"),
            ("../a", "../a"),
            (".", "*"),
        ] {
            assert_eq!(PathResolver::Remote.resource_name(input), name);
        }
    }
}
