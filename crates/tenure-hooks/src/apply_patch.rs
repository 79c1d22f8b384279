//! Patches in the form `*** Begin Patch`: which files they are about.
//!
//! Only headers are looked at, and rather one too many than one too few: a name too many is a file that no other session may
//! edit for a moment, a name too few is an edit without a lease.

use crate::payload::PayloadErrorKind;
use crate::shell_script;
use crate::tools::MAX_PATHS;

const BEGIN: &str = "*** Begin Patch";
const ADD: &str = "*** Add File:";
const UPDATE: &str = "*** Update File:";
const DELETE: &str = "*** Delete File:";
const MOVE: &str = "*** Move to:";
const HEADERS: [&str; 4] = [ADD, UPDATE, DELETE, MOVE];

/// The longest command in which a patch is looked for, in bytes.
const MAX_COMMAND_BYTES: usize = 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PatchedFiles {
    /// The files, as the patch names them, from the folder in which it is applied. Both ends of a move.
    pub names: Vec<String>,
    /// Whether every file gets a whole new content.
    pub replaces_content: bool,
}

/// Whether `text` looks like a patch.
pub(super) fn is_patch(text: &str) -> bool {
    text.contains(BEGIN) || text.lines().any(|line| header(line).is_some())
}

/// Reads the text of a patch.
pub(super) fn parse(text: &str) -> Result<PatchedFiles, PayloadErrorKind> {
    let mut patch = PatchedFiles { names: Vec::new(), replaces_content: true };
    for (kind, names) in text.lines().filter_map(header) {
        patch.replaces_content &= kind == ADD;
        for name in names {
            patch.add(name.to_owned())?;
        }
    }
    if patch.names.is_empty() { Err(PayloadErrorKind::EmptyPatch) } else { Ok(patch) }
}

/// Reads the patches that a shell command applies. `None`: it applies none.
///
/// A patch that the command takes from elsewhere, or whose files or folder only the shell knows, is an error.
pub(super) fn parse_command(command: &str) -> Result<Option<PatchedFiles>, PayloadErrorKind> {
    if !command.contains("apply_patch") && !command.contains("applypatch") {
        return Ok(None);
    }
    if command.len() > MAX_COMMAND_BYTES {
        return Err(PayloadErrorKind::UnclearPatch);
    }
    let headers = command.lines().filter(|line| header(line).is_some()).count();
    if command.lines().any(hides_a_header) {
        return Err(PayloadErrorKind::UnclearPatch);
    }
    let script = shell_script::parse_script(command);
    if headers == 0 {
        let applies_one = script.applies_a_patch || command.contains(BEGIN);
        return if applies_one { Err(PayloadErrorKind::UnclearPatch) } else { Ok(None) };
    }
    let understood: usize = script.inputs.iter().map(|body| headers_of(&body.text)).sum();
    if script.is_ambiguous || understood < headers {
        // Only where the patch is applied is unknown now, and that matters only if the command goes somewhere.
        if shell_script::may_change_folder(command) {
            return Err(PayloadErrorKind::UnclearPatch);
        }
        let patch = parse(command)?;
        return if patch.is_literal() { Ok(Some(patch)) } else { Err(PayloadErrorKind::UnclearPatch) };
    }
    let mut all = PatchedFiles { names: Vec::new(), replaces_content: true };
    for body in script.inputs.iter().filter(|body| headers_of(&body.text) > 0) {
        let patch = parse(&body.text)?;
        if !body.is_literal && !patch.is_literal() {
            return Err(PayloadErrorKind::UnclearPatch);
        }
        let folders = body.folders.as_ref().ok_or(PayloadErrorKind::UnclearPatch)?;
        all.replaces_content &= patch.replaces_content;
        for folder in folders {
            for name in &patch.names {
                let is_from_root = folder.is_empty() || name.starts_with('/');
                all.add(if is_from_root { name.clone() } else { format!("{folder}/{name}") })?;
            }
        }
    }
    Ok(Some(all))
}

impl PatchedFiles {
    fn add(&mut self, name: String) -> Result<(), PayloadErrorKind> {
        if self.names.contains(&name) {
            return Ok(());
        }
        if self.names.len() == MAX_PATHS {
            return Err(PayloadErrorKind::TooManyPaths);
        }
        self.names.push(name);
        Ok(())
    }

    /// Whether no shell would put anything else in place of a name.
    fn is_literal(&self) -> bool {
        !self.names.iter().any(|name| name.contains(['$', '`', '\\']))
    }
}

/// The header that `line` is, and the names that may be meant: some parsers trim them and some do not.
fn header(line: &str) -> Option<(&'static str, Vec<&str>)> {
    let line = line.trim_start();
    let kind = HEADERS.into_iter().find(|kind| line.starts_with(kind))?;
    // Around a move nothing is trimmed, around the others the whole line is.
    let line = if kind == MOVE { line } else { line.trim_end() };
    let name = &line[kind.len()..];
    let name = name.strip_prefix(' ').unwrap_or(name);
    let mut names = vec![name.trim()];
    if name.trim() != name {
        names.push(name);
    }
    names.retain(|name| !name.is_empty());
    (!names.is_empty()).then_some((kind, names))
}

fn headers_of(text: &str) -> usize {
    text.lines().filter(|line| header(line).is_some()).count()
}

/// Whether a header stands in the middle of a line that is not a line of a patch, as in `printf '…\n*** Add File: a\n'`.
fn hides_a_header(line: &str) -> bool {
    let is_of_a_patch = header(line).is_some() || line.starts_with(['+', '-', ' ']);
    !is_of_a_patch && HEADERS.iter().any(|kind| line.contains(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        parse(text).expect("a patch").names
    }

    #[test]
    fn every_file_of_a_patch_and_both_ends_of_a_move_are_found() {
        // S4-15
        let text = "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** Update File: b\n*** Move to: sub/c\n@@\n\
                    -x\n+y\n*** Add File: d e\n+*** Add File: not this\n*** Delete File: /f\n*** End Patch";
        assert_eq!(names(text), ["a", "b", "sub/c", "d e", "/f"]);
    }

    #[test]
    fn only_a_patch_of_new_files_replaces_whole_contents() {
        assert!(
            parse("*** Begin Patch\n*** Add File: a\n+x\n*** Add File: b\n+x\n*** End Patch")
                .unwrap()
                .replaces_content
        );
        assert!(
            !parse("*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n*** End Patch")
                .unwrap()
                .replaces_content
        );
    }

    #[test]
    fn spaces_around_a_name_never_hide_a_file() {
        assert_eq!(names("  *** Update File: a  \r\n"), ["a"]);
        assert_eq!(names("*** Update File:a"), ["a"]);
        assert_eq!(names("*** Update File:  a"), ["a", " a"]);
        assert_eq!(names("*** Update File: a\n*** Move to: b "), ["a", "b", "b "]);
    }

    #[test]
    fn a_patch_without_a_file_is_an_error() {
        for text in ["", "*** Begin Patch\n*** End Patch", "*** Begin Patch\n*** Add File: \n*** End Patch"] {
            assert_eq!(parse(text), Err(PayloadErrorKind::EmptyPatch), "{text:?}");
        }
    }
}
