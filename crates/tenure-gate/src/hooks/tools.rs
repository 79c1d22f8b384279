//! Which tools change or read which files.

use std::path::PathBuf;

use serde_json::Value;

use super::fields::Fields;
use super::patch;
use super::unheard::Wrong;

/// The most files that one call may name.
pub const MOST_PATHS: usize = 1_000;

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
pub(super) enum Touch {
    Writes { paths: Vec<PathBuf>, whole: bool },
    Reads { paths: Vec<PathBuf> },
    Nothing,
}

/// A tool that is known to change the files it names.
pub(super) fn writes(input: &Fields<'_>, whole: bool) -> Result<Touch, Wrong> {
    let paths = named(input, &PATHS)?;
    if paths.is_empty() { Err(Wrong::NoPath) } else { Ok(Touch::Writes { paths, whole }) }
}

/// A tool that is known to read the files it names. Patterns are left out: nobody knows what they found.
pub(super) fn reads(input: &Fields<'_>) -> Result<Touch, Wrong> {
    let mut paths = named(input, &PATHS)?;
    for (name, value) in input.entries() {
        let list = value.as_array().filter(|_| MANY.contains(&name));
        for text in list.into_iter().flatten().filter_map(Value::as_str) {
            if !text.contains(['*', '?', '[', '{']) {
                add(&mut paths, path(input, text)?)?;
            }
        }
    }
    Ok(Touch::Reads { paths })
}

/// A tool that is known to apply a patch.
pub(super) fn patches(input: &Fields<'_>) -> Result<Touch, Wrong> {
    let mut found = Vec::new();
    let mut whole = true;
    for (_, text) in input.entries().filter_map(|(name, value)| Some((name, value.as_str()?))) {
        if patch::is_one(text) {
            let patch = patch::read(text)?;
            whole &= patch.whole;
            for name in &patch.names {
                add(&mut found, path(input, name)?)?;
            }
        }
    }
    if found.is_empty() { Err(Wrong::EmptyPatch) } else { Ok(Touch::Writes { paths: found, whole }) }
}

/// A tool that nobody here knows, such as one of an MCP server. It changes files if its name says so and it names some.
pub(super) fn guess(tool: &str, input: &Fields<'_>) -> Result<Touch, Wrong> {
    let tool = tool.to_ascii_lowercase();
    let is_one_of = |verbs: &[&str]| verbs.iter().any(|verb| tool.contains(verb));
    let is_folder = is_one_of(&["director", "folder"]) && !is_one_of(&["delete", "move", "rename"]);
    if !is_one_of(&VERBS) || is_folder {
        return Ok(Touch::Nothing);
    }
    if tool.contains("patch") && input.entries().any(|(_, value)| value.as_str().is_some_and(patch::is_one)) {
        return patches(input);
    }
    let mut paths = Vec::new();
    loose(input, &PATHS, &mut paths)?;
    if is_one_of(&["move", "rename"]) {
        loose(input, &ENDS, &mut paths)?;
    }
    loose(input, &["paths", "files"], &mut paths)?;
    for file in input.objects("files").chain(input.objects("edits")) {
        loose(&file, &PATHS, &mut paths)?;
    }
    if paths.is_empty() {
        return Ok(Touch::Nothing);
    }
    let whole = is_one_of(&["write", "create"]) && has_content(input);
    Ok(Touch::Writes { paths, whole })
}

/// Whether a tool was given a whole new content.
pub(super) fn has_content(input: &Fields<'_>) -> bool {
    ["content", "contents", "file_text"].iter().any(|name| input.value(name).is_some())
}

/// The path that `text` is.
pub(super) fn path(input: &Fields<'_>, text: &str) -> Result<PathBuf, Wrong> {
    let is_path = !text.is_empty() && !text.contains('\0') && !input.is_cut(text);
    if is_path { Ok(PathBuf::from(text)) } else { Err(Wrong::BadPath) }
}

/// Adds one more path, if it is not there yet.
pub(super) fn add(paths: &mut Vec<PathBuf>, path: PathBuf) -> Result<(), Wrong> {
    if paths.contains(&path) {
        return Ok(());
    }
    if paths.len() == MOST_PATHS {
        return Err(Wrong::TooManyPaths);
    }
    paths.push(path);
    Ok(())
}

/// All paths under these names, also those of single edits in a list of them.
fn named(input: &Fields<'_>, names: &[&'static str]) -> Result<Vec<PathBuf>, Wrong> {
    let mut paths = Vec::new();
    for name in names {
        if let Some(text) = input.text(name)? {
            add(&mut paths, path(input, text)?)?;
        }
    }
    for edit in input.objects("edits") {
        for name in names {
            if let Some(text) = edit.text(name)? {
                add(&mut paths, path(input, text)?)?;
            }
        }
    }
    Ok(paths)
}

/// The same for a tool that nobody knows: something else than a text, or a list of them, is no path there.
fn loose(input: &Fields<'_>, names: &[&str], paths: &mut Vec<PathBuf>) -> Result<(), Wrong> {
    for value in names.iter().filter_map(|name| input.value(name)) {
        let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        for text in list.iter().filter_map(Value::as_str).filter(|text| !text.is_empty()) {
            add(paths, path(input, text)?)?;
        }
    }
    Ok(())
}
