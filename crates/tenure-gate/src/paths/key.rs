//! From a real path to the resources that stand for the file.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rustix::fs::stat;

use super::error::PathError;
use super::escape::resource;
use super::fold::{fold, folds, spelled};
use super::machine::machine;
use super::mounts::Mounts;
use super::resolve::{Reached, reach};
use super::tree::{above, identity, is_gits_own};
use super::{FileKey, Target};

/// What this absolute path reaches.
pub(super) fn target(whole: &Path) -> Result<Target, PathError> {
    let reached = reach(whole)?;
    if reached.is_folder() {
        return Err(PathError::NotAFile(whole.to_path_buf()));
    }
    let mounts = Mounts::read();
    let mut others = other_names(&mounts, &reached);
    let mut file = key(&reached, &mounts)?;
    // A part of a tree can be mounted where there is none.
    while file.is_none() && !is_gits(&reached)? {
        let Some(other) = others.pop() else { return Ok(Target::Outside) };
        file = key(&other, &mounts)?;
    }
    let Some(mut file) = file else { return Ok(Target::Outside) };
    for other in &others {
        if let Some(other) = key(other, &mounts)? {
            file.also(std::iter::once(&*other.resource));
        }
    }
    Ok(Target::File(file))
}

/// The file in its working tree, if it is in one.
fn key(reached: &Reached, mounts: &Mounts) -> Result<Option<FileKey>, PathError> {
    let absolute = &reached.path;
    let Some(tree) = absolute.parent().map(above).transpose()?.flatten() else { return Ok(None) };
    if is_gits_own(&tree.root, absolute) {
        return Ok(None);
    }
    let Ok(relative) = absolute.strip_prefix(&tree.root) else { return Ok(None) };
    let names = Names::of(&tree.root, relative, reached);
    let mut file = FileKey {
        resource: resource(&tree.id, &names.folded),
        absolute: tree.root.join(&names.spelled),
        relative: names.spelled,
        aliases: Vec::new(),
        identity: reached.found.as_ref().map(identity),
        tree,
    };
    let has_links = reached.found.as_ref().is_some_and(|about| about.st_nlink > 1);
    if has_links || mounts.any_below(&file.tree.root) {
        file.aliases.extend(by_number(reached, &names.folded));
    }
    Ok(Some(file))
}

/// The resource of the file itself, by its device and number, whatever it is called. One that does not exist yet has none:
/// then by those of the deepest folder that exists, and the way on from there.
fn by_number(reached: &Reached, folded: &[OsString]) -> Option<String> {
    let about = |(device, number): (u64, u64)| format!("{}/.inode/{device}-{number}", machine());
    if let Some(found) = &reached.found {
        return Some(format!("FILE:{}", about(identity(found))));
    }
    let folder = stat(reached.deepest_folder()).ok()?;
    let rest = &folded[folded.len().saturating_sub(reached.missing)..];
    Some(resource(&about(identity(&folder)), rest))
}

/// The same file under the names that it has through other mounts.
fn other_names(mounts: &Mounts, reached: &Reached) -> Vec<Reached> {
    let names = mounts.other_names(&reached.path);
    let others = names.into_iter().filter_map(|name| reach(&name).ok());
    others.filter(|other| other.path != reached.path && is_same(other, reached)).collect()
}

/// Whether two are really one, and not hidden behind another mount: by the file, or the folder where it would be.
fn is_same(one: &Reached, other: &Reached) -> bool {
    match (&one.found, &other.found) {
        (Some(one), Some(other)) => identity(one) == identity(other),
        (None, None) => {
            let folder = |reached: &Reached| stat(reached.deepest_folder()).map(|about| identity(&about));
            one.missing == other.missing
                && matches!((folder(one), folder(other)), (Ok(one), Ok(other)) if one == other)
        }
        _ => false,
    }
}

/// Whether this is in a working tree, but git's own.
fn is_gits(reached: &Reached) -> Result<bool, PathError> {
    let tree = reached.path.parent().map(above).transpose()?.flatten();
    Ok(tree.is_some_and(|tree| is_gits_own(&tree.root, &reached.path)))
}

/// A path below a root, in two forms.
struct Names {
    /// For people and git.
    spelled: PathBuf,
    /// For comparing.
    folded: Vec<OsString>,
}

impl Names {
    /// Most names are in their one form already, so whether their folder folds makes no difference and is not asked; only
    /// the last folder is, because a name could be spelled otherwise there.
    fn of(root: &Path, relative: &Path, reached: &Reached) -> Self {
        let parts: Vec<&OsStr> = relative.iter().collect();
        let existing = parts.len().saturating_sub(reached.missing);
        let last_folds = folds(reached.deepest_folder());
        let is_settled = |part: &&OsStr| fold(part) == **part;
        if !last_folds && parts.iter().all(is_settled) {
            return Self {
                spelled: relative.to_path_buf(),
                folded: parts.iter().map(OsString::from).collect(),
            };
        }
        let mut names = Self { spelled: PathBuf::new(), folded: Vec::new() };
        for (place, part) in parts.into_iter().enumerate() {
            let folder = root.join(&names.spelled);
            // A new folder folds if the one above it does.
            let does_fold = if place >= existing { last_folds } else { folds(&folder) };
            let spelling = (does_fold && place < existing).then(|| spelled(&folder, part)).flatten();
            names.spelled.push(spelling.as_deref().unwrap_or(part));
            names.folded.push(if does_fold { fold(part).into_owned() } else { part.to_owned() });
        }
        names
    }
}
