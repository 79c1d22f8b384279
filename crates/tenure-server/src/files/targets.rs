//! From paths as an agent wrote them to files by all the names that lead to them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tenure_core::kernel::{FileWant, Resource};
use tenure_gate::paths::{FileKey, Target, target_of};

use super::FileFace;
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::leases::nonce;

/// The files that these paths reach, each once. What is outside of every working tree is left out.
///
/// It looks at the disk, so not on a thread that others wait for.
pub(super) fn find(app: &App, cwd: &Path, paths: &[String]) -> Result<Vec<FileKey>, Failure> {
    let mut files: BTreeMap<String, FileKey> = BTreeMap::new();
    for (index, path) in paths.iter().enumerate() {
        let wrong =
            |error: &dyn std::fmt::Display| Failure::invalid(&format!("paths[{index}]"), &error.to_string());
        match target_of(Path::new(path), cwd).map_err(|error| wrong(&error))? {
            Target::Outside => {}
            Target::File(key) => {
                app.files.trees.note(&key.tree);
                files.insert(key.resource.clone(), key);
            }
        }
    }
    let mut files: Vec<FileKey> = files.into_values().collect();
    files.iter_mut().for_each(|file| add_names_of_links(app, file));
    Ok(files)
}

/// What the kernel is asked for.
pub(super) fn wants(files: &[FileKey]) -> Result<Vec<FileWant>, Failure> {
    files.iter().map(want).collect()
}

/// The same for one file.
pub(super) fn want(file: &FileKey) -> Result<FileWant, Failure> {
    let aliases: Vec<Resource> =
        file.aliases.iter().map(|alias| Resource::parse(alias)).collect::<Result<_, _>>()?;
    let nonces = (0..=aliases.len()).map(|_| nonce()).collect::<Result<_, _>>()?;
    Ok(FileWant { resource: Resource::parse(&file.resource)?, aliases, nonces })
}

/// Every name of a file.
pub(super) fn names(file: &FileKey) -> Result<Vec<Resource>, Failure> {
    Ok(file.resources().map(Resource::parse).collect::<Result<_, _>>()?)
}

/// A file that has another name now may have had only one when somebody got it: then that one is looked for among what is
/// held, and stands for both.
fn add_names_of_links(app: &App, file: &mut FileKey) {
    let Some(identity) = file.identity.filter(|_| !file.aliases.is_empty()) else { return };
    for (resource, path) in held_paths(app) {
        let is_same = fs::metadata(&path).is_ok_and(|found| (found.dev(), found.ino()) == identity);
        if is_same && !file.resources().any(|known| known == resource) {
            file.aliases.push(resource);
        }
    }
}

/// Every file that somebody has, and where it is.
fn held_paths(app: &App) -> Vec<(String, PathBuf)> {
    let held: Vec<Resource> = app.registrar.read(|state| {
        let leases = state.file_sessions().flat_map(|session| state.leases_of_holder(&session.id));
        leases.map(|lease| lease.resource.clone()).collect()
    });
    let path = |resource: &Resource| FileFace::path_of(app, resource);
    held.iter().filter_map(|resource| Some((resource.as_str().to_owned(), path(resource)?))).collect()
}
