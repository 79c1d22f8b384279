//! From a real path to the resources that stand for the file.

use std::ffi::OsString;
use std::path::Path;

use rustix::fs::{lstat, stat};

use super::error::PathError;
use super::escape::resource;
use super::fold::folds;
use super::mounts::Mounts;
use super::names::{Names, machine};
use super::resolve::{Reached, reach, reach_entry};
use super::tree::{above, identity};
use super::{FileKey, Target, WorkTree};

pub(super) fn target(whole: &Path) -> Result<Target, PathError> {
    of_reached(whole, reach(whole)?)
}

/// What is at this absolute path itself, be it a link.
pub(super) fn entry(whole: &Path) -> Result<Target, PathError> {
    of_reached(whole, reach_entry(whole)?)
}

fn of_reached(whole: &Path, reached: Reached) -> Result<Target, PathError> {
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
    if tree.is_gits_own(absolute) {
        return Ok(None);
    }
    let Ok(relative) = absolute.strip_prefix(&tree.root) else { return Ok(None) };
    let names = Names::of(&tree.root, relative, reached.missing, &folds);
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

/// The resource of a name itself, below the root of its tree.
pub(super) fn name_in(tree: &WorkTree, relative: &Path) -> String {
    let is_missing = |above: &&Path| lstat(tree.root.join(above)).is_err();
    let missing = relative.ancestors().take_while(is_missing).count();
    resource(&tree.id, &Names::of(&tree.root, relative, missing, &folds).folded)
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
    Ok(tree.is_some_and(|tree| tree.is_gits_own(&reached.path)))
}
