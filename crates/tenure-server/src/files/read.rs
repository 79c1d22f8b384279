//! What several requests about files have: paths, and lists of them.

use std::path::PathBuf;

use crate::http::answer::Failure;
use crate::http::fields::Fields;

/// A path that does not depend on who asks from where.
pub(super) fn absolute(text: &str, field: &str) -> Result<PathBuf, Failure> {
    let path = PathBuf::from(text);
    if path.is_absolute() { Ok(path) } else { Err(Failure::invalid(field, "must be an absolute path")) }
}

/// A list of texts, which may be missing.
pub(super) fn strings(fields: &mut Fields, name: &'static str, most: usize) -> Result<Vec<String>, Failure> {
    let list = fields.optional_list(name)?.unwrap_or_default();
    if list.len() <= most {
        return Ok(list);
    }
    Err(Failure::invalid(name, &format!("has {} entries; at most {most} are allowed", list.len())))
}
