//! From a real path to the resources that stand for the file.

use std::ffi::OsString;
use std::path::Path;

use rustix::fs::{lstat, stat};

use super::case_folding::is_case_insensitive;
use super::error::PathError;
use super::escape::resource;
use super::mounts::Mounts;
use super::normalized_path::{NormalizedPath, machine_digest};
use super::resolve::{ResolvedPath, resolve, resolve_nofollow};
use super::work_tree::{file_identity, find_tree_above};
use super::{FileKey, PathTarget, WorkTree};

pub(super) fn target_of_path(whole: &Path) -> Result<PathTarget, PathError> {
    of_reached(whole, resolve(whole)?)
}

/// What is at this absolute path itself, be it a link.
pub(super) fn entry_of_path(whole: &Path) -> Result<PathTarget, PathError> {
    of_reached(whole, resolve_nofollow(whole)?)
}

fn of_reached(whole: &Path, reached: ResolvedPath) -> Result<PathTarget, PathError> {
    if reached.is_folder() {
        return Err(PathError::NotAFile(whole.to_path_buf()));
    }
    let mounts = Mounts::read();
    let mut aliases = other_names(&mounts, &reached);
    let mut file = key(&reached, &mounts)?;
    // A part of a tree can be mounted where there is none.
    while file.is_none() && !is_git_internal(&reached)? {
        let Some(other) = aliases.pop() else { return Ok(PathTarget::Outside) };
        file = key(&other, &mounts)?;
    }
    let Some(mut file) = file else { return Ok(PathTarget::Outside) };
    for other in &aliases {
        if let Some(other) = key(other, &mounts)? {
            file.add_aliases(std::iter::once(&*other.resource));
        }
    }
    Ok(PathTarget::File(file))
}

/// The file in its working tree, if it is in one.
fn key(reached: &ResolvedPath, mounts: &Mounts) -> Result<Option<FileKey>, PathError> {
    let absolute = &reached.path;
    let Some(tree) = absolute.parent().map(find_tree_above).transpose()?.flatten() else { return Ok(None) };
    if tree.is_git_internal(absolute) {
        return Ok(None);
    }
    let Ok(relative) = absolute.strip_prefix(&tree.root) else { return Ok(None) };
    let names = NormalizedPath::of(&tree.root, relative, reached.missing, &is_case_insensitive);
    let mut file = FileKey {
        resource: resource(&tree.id, &names.folded),
        absolute: tree.root.join(&names.spelled),
        relative: names.spelled,
        aliases: Vec::new(),
        identity: reached.found.as_ref().map(file_identity),
        tree,
    };
    let has_links = reached.found.as_ref().is_some_and(|about| about.st_nlink > 1);
    if has_links || mounts.has_mount_below(&file.tree.root) {
        file.aliases.extend(inode_resource(reached, &names.folded));
    }
    Ok(Some(file))
}

/// The resource of a name itself, below the root of its tree.
pub(super) fn resource_of_name(tree: &WorkTree, relative: &Path) -> String {
    let is_missing = |above: &&Path| lstat(tree.root.join(above)).is_err();
    let missing = relative.ancestors().take_while(is_missing).count();
    resource(&tree.id, &NormalizedPath::of(&tree.root, relative, missing, &is_case_insensitive).folded)
}

/// The resource of the file itself, by its device and number, whatever it is called. One that does not exist yet has none:
/// then by those of the deepest folder that exists, and the way on from there.
fn inode_resource(reached: &ResolvedPath, folded: &[OsString]) -> Option<String> {
    let about = |(device, number): (u64, u64)| format!("{}/.inode/{device}-{number}", machine_digest());
    if let Some(found) = &reached.found {
        return Some(format!("FILE:{}", about(file_identity(found))));
    }
    let folder = stat(reached.deepest_folder()).ok()?;
    let rest = &folded[folded.len().saturating_sub(reached.missing)..];
    Some(resource(&about(file_identity(&folder)), rest))
}

/// The same file under the names that it has through other mounts.
fn other_names(mounts: &Mounts, reached: &ResolvedPath) -> Vec<ResolvedPath> {
    let names = mounts.path_aliases(&reached.path);
    let aliases = names.into_iter().filter_map(|name| resolve(&name).ok());
    aliases.filter(|other| other.path != reached.path && is_same(other, reached)).collect()
}

/// Whether two are really one, and not hidden behind another mount: by the file, or the folder where it would be.
fn is_same(one: &ResolvedPath, other: &ResolvedPath) -> bool {
    match (&one.found, &other.found) {
        (Some(one), Some(other)) => file_identity(one) == file_identity(other),
        (None, None) => {
            let folder =
                |reached: &ResolvedPath| stat(reached.deepest_folder()).map(|about| file_identity(&about));
            one.missing == other.missing
                && matches!((folder(one), folder(other)), (Ok(one), Ok(other)) if one == other)
        }
        _ => false,
    }
}

/// Whether this is in a working tree, but git's own.
fn is_git_internal(reached: &ResolvedPath) -> Result<bool, PathError> {
    let tree = reached.path.parent().map(find_tree_above).transpose()?.flatten();
    Ok(tree.is_some_and(|tree| tree.is_git_internal(&reached.path)))
}
