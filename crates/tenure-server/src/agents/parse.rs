//! What agents call themselves and what they touch, read strictly.

use tenure_api::ManifestObject;
use tenure_core::kernel::{Holder, LeaseMode, Resource};
use tenure_core::rules::overlap::{HIERARCHICAL_KINDS, is_hierarchical};
use tenure_core::rules::{MAX_NAME_BYTES, check_name};

use crate::http::response::HttpError;

/// The longest name of an agent or a session, in bytes.
const MAX_ID_BYTES: usize = 256;

pub(super) fn parse_agent_id(name: &str) -> Result<Holder, HttpError> {
    check_id("agent_id", name)?;
    Holder::parse(name).map_err(|invalid| HttpError::invalid("agent_id", &invalid.reason))
}

/// Whether this can be the name of an agent or a session.
pub(super) fn check_id(field: &'static str, text: &str) -> Result<(), HttpError> {
    check_length(field, text, MAX_ID_BYTES)?;
    Ok(check_name(field, text)?)
}

pub(super) fn check_length(field: &str, text: &str, max: usize) -> Result<(), HttpError> {
    if text.len() <= max {
        return Ok(());
    }
    Err(HttpError::invalid(field, &format!("has {} bytes; at most {max} are allowed", text.len())))
}

/// In which way an agent wants something. Exactly these names: who writes another may mean another.
pub(super) fn parse_lease_mode(name: &str) -> Result<LeaseMode, HttpError> {
    let mut known = LeaseMode::ALL.into_iter().filter(|mode| mode.is_agent_mode());
    known.find(|mode| mode.as_str() == name).ok_or_else(|| {
        let reason = "must be PROVIDES, CONSUMES, DEPENDS_ON, MUTATES, DELETES or RENAMES";
        HttpError::invalid("predicate", reason)
    })
}

pub(super) fn object(object: &ManifestObject) -> Result<Resource, HttpError> {
    let kind = HIERARCHICAL_KINDS
        .into_iter()
        .find(|known| known.strip_suffix(':') == Some(&object.resource_type))
        .ok_or_else(|| {
            let reason = "must be FILE, SYMBOL, API_ENDPOINT, DATABASE_TABLE or CONFIG_KEY";
            HttpError::invalid("resource_type", reason)
        })?;
    resource("path", kind, &object.path)
}

/// `TYPE:path`, as agents are told it.
pub(super) fn parse_resource_name(field: &'static str, name: &str) -> Result<Resource, HttpError> {
    let kind = HIERARCHICAL_KINDS.into_iter().find_map(|kind| Some((kind, name.strip_prefix(kind)?)));
    let (kind, path) = kind.ok_or_else(|| {
        let reason =
            "must be TYPE:path, with the type FILE, SYMBOL, API_ENDPOINT, DATABASE_TABLE or CONFIG_KEY";
        HttpError::invalid(field, reason)
    })?;
    resource(field, kind, path)
}

/// The same for whoever only asks, and may ask about resources of any kind.
pub(super) fn any_resource(field: &'static str, name: &str) -> Result<Resource, HttpError> {
    if is_hierarchical(name) {
        return parse_resource_name(field, name);
    }
    Resource::parse(name).map_err(|invalid| HttpError::invalid(field, &invalid.reason))
}

fn resource(field: &'static str, kind: &str, path: &str) -> Result<Resource, HttpError> {
    check_name(field, path)?;
    check_length(field, path, MAX_NAME_BYTES)?;
    let path = normalize_path(path).map_err(|reason| HttpError::invalid(field, reason))?;
    Resource::parse(&format!("{kind}{path}")).map_err(|invalid| HttpError::invalid(field, &invalid.reason))
}

/// A path in the one form that it has here: `./a`, `a//b` and `a/./b` are `a` and `a/b`. What leads back up is refused: where
/// it ends cannot be known here, so it could mean what somebody else has. A `/` in front is kept, and one at the end.
fn normalize_path(path: &str) -> Result<String, &'static str> {
    if path.split(['/', '{', ',', '}']).any(|part| part == "..") {
        return Err("has a `..` in it; write where that leads to");
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let begins = if path.starts_with('/') { "/" } else { "" };
    let is_folder = path.ends_with('/') || path.ends_with("/.");
    let ends = if is_folder && !parts.is_empty() { "/" } else { "" };
    if parts.is_empty() && begins.is_empty() {
        return Err("names the folder that everything is in; write `*` for everything");
    }
    Ok(format!("{begins}{}{ends}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equivalent_paths_are_normalized_to_one_form() {
        let same = [
            ("a", "a"),
            ("./a", "a"),
            ("././a", "a"),
            ("a//b", "a/b"),
            ("a/./b", "a/b"),
            ("a/", "a/"),
            ("a//", "a/"),
            ("a/.", "a/"),
            ("/", "/"),
            ("//a", "/a"),
            ("/./a", "/a"),
            ("./**/*.rs", "**/*.rs"),
            ("..a/b..", "..a/b.."),
            ("app/[id].tsx", "app/[id].tsx"),
            ("std::ops", "std::ops"),
        ];
        for (path, expected) in same {
            assert_eq!(normalize_path(path).as_deref(), Ok(expected), "{path}");
            assert_eq!(normalize_path(expected).as_deref(), Ok(expected), "{path} has one form, not two");
        }
        for path in ["..", "../a", "a/../b", "a/..", "a/{..,b}", ".", "./", "./."] {
            assert!(normalize_path(path).is_err(), "{path}");
        }
    }
}
