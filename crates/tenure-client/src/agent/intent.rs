//! What an agent is about to touch.

use serde::{Deserialize, Serialize};
use tenure_api::{ManifestIntent, ManifestObject, ResourceAccess};

/// One thing that an agent is about to touch, and in which way.
///
/// ```
/// use tenure_client::agent::AgentIntent;
/// let intent = AgentIntent::mutates("FILE:src/lib.rs");
/// assert_eq!((intent.predicate.as_str(), intent.resource.as_str()), ("MUTATES", "FILE:src/lib.rs"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentIntent {
    /// In which way: `PROVIDES`, `CONSUMES`, `DEPENDS_ON`, `MUTATES`, `DELETES` or `RENAMES`.
    pub predicate: String,
    /// On what: `TYPE:path`, where the type is `FILE`, `SYMBOL`, `API_ENDPOINT`, `DATABASE_TABLE` or `CONFIG_KEY`. What ends
    /// with `/` means everything below, and so does a pattern with `*` or `?` from there on.
    pub resource: String,
}

impl AgentIntent {
    /// In whatever way; the server says no to one that it does not know.
    pub fn new(predicate: impl Into<String>, resource: impl Into<String>) -> Self {
        Self { predicate: predicate.into(), resource: resource.into() }
    }

    /// Makes it for others.
    pub fn provides(resource: impl Into<String>) -> Self {
        Self::new("PROVIDES", resource)
    }

    /// Uses it.
    pub fn consumes(resource: impl Into<String>) -> Self {
        Self::new("CONSUMES", resource)
    }

    /// Needs it to stay as it is.
    pub fn depends_on(resource: impl Into<String>) -> Self {
        Self::new("DEPENDS_ON", resource)
    }

    /// Changes it.
    pub fn mutates(resource: impl Into<String>) -> Self {
        Self::new("MUTATES", resource)
    }

    /// Does away with it.
    pub fn deletes(resource: impl Into<String>) -> Self {
        Self::new("DELETES", resource)
    }

    /// Gives it another name.
    pub fn renames(resource: impl Into<String>) -> Self {
        Self::new("RENAMES", resource)
    }

    /// As it stands in a manifest. Without a type it has none, and the server says no.
    pub(super) fn to_manifest_intent(&self) -> ManifestIntent {
        let (resource_type, path) = self.resource.split_once(':').unwrap_or(("", &self.resource));
        ManifestIntent {
            id: None,
            subject: None,
            predicate: self.predicate.clone(),
            object: ManifestObject { resource_type: resource_type.into(), path: path.into() },
            timestamp: None,
            confidence: None,
            session_id: None,
        }
    }

    pub(super) fn to_resource_access(&self) -> ResourceAccess {
        ResourceAccess { resource: self.resource.clone(), predicate: self.predicate.clone() }
    }
}
