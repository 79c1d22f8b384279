//! Which tools change or read which files.

use std::path::PathBuf;

use serde_json::Value;

use crate::apply_patch;
use crate::payload::PayloadErrorKind;
use crate::payload_fields::PayloadFields;

/// The most files that one call may name.
pub const MAX_PATHS: usize = 1_000;

/// Under which names tools give the path of a file.
const PATHS: [&str; 10] = [
    "file_path",
    "filePath",
    "path",
    "notebook_path",
    "notebookPath",
    "target_file",
    "relative_path",
    "relativePath",
    "absolute_path",
    "pathInProject",
];

/// Under which names tools give both ends of a move.
const ENDS: [&str; 12] = [
    "source",
    "destination",
    "source_path",
    "destination_path",
    "old_path",
    "new_path",
    "oldPath",
    "newPath",
    "from",
    "to",
    "target",
    "target_path",
];

/// Under which names tools give many paths at once.
const MANY: [&str; 3] = ["paths", "files", "include"];

/// Names of tools that change files contain one of these.
const VERBS: [&str; 11] =
    ["write", "edit", "delete", "create", "patch", "replace", "move", "rename", "insert", "append", "update"];

/// What a tool does with files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ToolAccess {
    Writes { paths: Vec<PathBuf>, replaces_content: bool },
    Reads { paths: Vec<PathBuf> },
    Nothing,
}

/// A tool that is known to change the files it names.
pub(super) fn write_access(input: &PayloadFields<'_>, whole: bool) -> Result<ToolAccess, PayloadErrorKind> {
    let paths = collect_paths(input, &PATHS)?;
    if paths.is_empty() {
        Err(PayloadErrorKind::NoPath)
    } else {
        Ok(ToolAccess::Writes { paths, replaces_content: whole })
    }
}

/// A tool that is known to read the files it names. Patterns are left out: nobody knows what they found.
pub(super) fn read_access(input: &PayloadFields<'_>) -> Result<ToolAccess, PayloadErrorKind> {
    let mut paths = collect_paths(input, &PATHS)?;
    for (name, value) in input.entries() {
        let list = value.as_array().filter(|_| MANY.contains(&name));
        for text in list.into_iter().flatten().filter_map(Value::as_str) {
            if !text.contains(['*', '?', '[', '{']) {
                add_path(&mut paths, valid_path(input, text)?)?;
            }
        }
    }
    Ok(ToolAccess::Reads { paths })
}

/// A tool that is known to apply a patch.
pub(super) fn patch_access(input: &PayloadFields<'_>) -> Result<ToolAccess, PayloadErrorKind> {
    let mut found = Vec::new();
    let mut whole = true;
    for (_, text) in input.entries().filter_map(|(name, value)| Some((name, value.as_str()?))) {
        if apply_patch::is_patch(text) {
            let patch = apply_patch::parse(text)?;
            whole &= patch.replaces_content;
            for name in &patch.names {
                add_path(&mut found, valid_path(input, name)?)?;
            }
        }
    }
    if found.is_empty() {
        Err(PayloadErrorKind::EmptyPatch)
    } else {
        Ok(ToolAccess::Writes { paths: found, replaces_content: whole })
    }
}

/// A tool that nobody here knows, such as one of an MCP server. It changes files if its name says so and it names some.
pub(super) fn guess_access(tool: &str, input: &PayloadFields<'_>) -> Result<ToolAccess, PayloadErrorKind> {
    let tool = tool.to_ascii_lowercase();
    let is_one_of = |verbs: &[&str]| verbs.iter().any(|verb| tool.contains(verb));
    let is_folder = is_one_of(&["director", "folder"]) && !is_one_of(&["delete", "move", "rename"]);
    if !is_one_of(&VERBS) || is_folder {
        return Ok(ToolAccess::Nothing);
    }
    if tool.contains("patch")
        && input.entries().any(|(_, value)| value.as_str().is_some_and(apply_patch::is_patch))
    {
        return patch_access(input);
    }
    let mut paths = Vec::new();
    collect_lenient_paths(input, &PATHS, &mut paths)?;
    if is_one_of(&["move", "rename"]) {
        collect_lenient_paths(input, &ENDS, &mut paths)?;
    }
    collect_lenient_paths(input, &["paths", "files"], &mut paths)?;
    for file in input.objects("files").chain(input.objects("edits")) {
        collect_lenient_paths(&file, &PATHS, &mut paths)?;
    }
    if paths.is_empty() {
        return Ok(ToolAccess::Nothing);
    }
    let whole = is_one_of(&["write", "create"]) && has_content(input);
    Ok(ToolAccess::Writes { paths, replaces_content: whole })
}

/// Whether a tool was given a whole new content.
pub(super) fn has_content(input: &PayloadFields<'_>) -> bool {
    ["content", "contents", "file_text"].iter().any(|name| input.value(name).is_some())
}

/// The path that `text` is.
pub(super) fn valid_path(input: &PayloadFields<'_>, text: &str) -> Result<PathBuf, PayloadErrorKind> {
    let is_path = !text.is_empty() && !text.contains('\0') && !input.is_truncated(text);
    if is_path { Ok(PathBuf::from(text)) } else { Err(PayloadErrorKind::BadPath) }
}

/// Adds one more path, if it is not there yet.
pub(super) fn add_path(paths: &mut Vec<PathBuf>, path: PathBuf) -> Result<(), PayloadErrorKind> {
    if paths.contains(&path) {
        return Ok(());
    }
    if paths.len() == MAX_PATHS {
        return Err(PayloadErrorKind::TooManyPaths);
    }
    paths.push(path);
    Ok(())
}

/// All paths under these names, also those of single edits in a list of them.
fn collect_paths(
    input: &PayloadFields<'_>,
    names: &[&'static str],
) -> Result<Vec<PathBuf>, PayloadErrorKind> {
    let mut paths = Vec::new();
    for name in names {
        if let Some(text) = input.text(name)? {
            add_path(&mut paths, valid_path(input, text)?)?;
        }
    }
    for edit in input.objects("edits") {
        for name in names {
            if let Some(text) = edit.text(name)? {
                add_path(&mut paths, valid_path(input, text)?)?;
            }
        }
    }
    Ok(paths)
}

/// The same for a tool that nobody knows: something else than a text, or a list of them, is no path there.
fn collect_lenient_paths(
    input: &PayloadFields<'_>,
    names: &[&str],
    paths: &mut Vec<PathBuf>,
) -> Result<(), PayloadErrorKind> {
    for value in names.iter().filter_map(|name| input.value(name)) {
        let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        for text in list.iter().filter_map(Value::as_str).filter(|text| !text.is_empty()) {
            add_path(paths, valid_path(input, text)?)?;
        }
    }
    Ok(())
}
