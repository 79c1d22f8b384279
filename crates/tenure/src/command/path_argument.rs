//! A file that somebody named on the command line.

use std::path::Path;

use crate::exit;
use crate::failure::Failure;

/// From where we are, as the server wants it. Which file that is, with all links, the server finds out.
pub fn absolute_path(path: &Path) -> Result<String, Failure> {
    let wrong = |what: &str| Failure::from_message(exit::USAGE, &format!("{}: {what}", path.display()));
    let whole = std::path::absolute(path).map_err(|error| wrong(&error.to_string()))?;
    whole.into_os_string().into_string().map_err(|_| wrong("this path is not UTF-8, so no agent can have it"))
}
