//! From paths as an agent wrote them to files by all the names that lead to them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use tenure_core::kernel::{FileRequest, Resource};
use tenure_gate::paths::{FileKey, PathError, PathTarget, target_of, target_of_nofollow};

use super::FilesApi;
use crate::app::App;
use crate::http::leases::nonce;
use crate::http::response::HttpError;

/// What somebody asked for, by its names.
#[derive(Clone)]
pub(super) struct RequestedPaths {
    pub(super) cwd: PathBuf,
    pub(super) paths: Vec<String>,
    pub(super) entries: Vec<String>,
}

/// The files that these paths reach, each once. What is outside of every working tree is left out.
///
/// It looks at the disk, so not on a thread that others wait for.
pub(super) fn resolve_paths(app: &App, requested: &RequestedPaths) -> Result<Vec<FileKey>, HttpError> {
    let mut files: BTreeMap<String, FileKey> = BTreeMap::new();
    let mut add = |field: &str, index: usize, found: Result<PathTarget, PathError>| {
        let wrong = |error: PathError| HttpError::invalid(&format!("{field}[{index}]"), &error.to_string());
        if let PathTarget::File(key) = found.map_err(wrong)? {
            app.files.trees.record(&key.tree);
            files.insert(key.resource.clone(), key);
        }
        Ok::<_, HttpError>(())
    };
    for (index, path) in requested.paths.iter().enumerate() {
        add("paths", index, target_of(Path::new(path), &requested.cwd))?;
    }
    for (index, path) in requested.entries.iter().enumerate() {
        add("entries", index, target_of_nofollow(&requested.cwd.join(path)))?;
    }
    let mut files: Vec<FileKey> = files.into_values().collect();
    add_names_of_links(app, &mut files);
    Ok(files)
}

/// The one file that this absolute path reaches; nothing if it is in no working tree. It looks at the disk.
pub(super) fn resolve_path(app: &App, path: &Path) -> Result<Option<FileKey>, PathError> {
    let PathTarget::File(mut file) = target_of(path, Path::new("/"))? else { return Ok(None) };
    app.files.trees.record(&file.tree);
    add_names_of_links(app, std::slice::from_mut(&mut file));
    Ok(Some(file))
}

/// What the kernel is asked for.
pub(super) fn file_requests(files: &[FileKey]) -> Result<Vec<FileRequest>, HttpError> {
    files.iter().map(file_request).collect()
}

pub(super) fn file_request(file: &FileKey) -> Result<FileRequest, HttpError> {
    let aliases: Vec<Resource> =
        file.aliases.iter().map(|alias| Resource::parse(alias)).collect::<Result<_, _>>()?;
    let nonces = (0..=aliases.len()).map(|_| nonce()).collect::<Result<_, _>>()?;
    Ok(FileRequest { resource: Resource::parse(&file.resource)?, aliases, nonces })
}

pub(super) fn names(file: &FileKey) -> Result<Vec<Resource>, HttpError> {
    Ok(file.resources().map(Resource::parse).collect::<Result<_, _>>()?)
}

/// A file that has another name now may have had only one when somebody got it: then that one is looked for among what is
/// held, and stands for both.
fn add_names_of_links(app: &App, files: &mut [FileKey]) {
    let identity_of = |file: &FileKey| file.identity.filter(|_| !file.aliases.is_empty());
    if files.iter().all(|file| identity_of(file).is_none()) {
        return;
    }
    // All that is held is looked at once, however many files have links.
    let held = held_by_identity(app);
    for file in files {
        let found = identity_of(file).and_then(|identity| held.get(&identity));
        for resource in found.into_iter().flatten() {
            if !file.resources().any(|known| known == resource) {
                file.aliases.push(resource.clone());
            }
        }
    }
}

/// The names under which each file is held that somebody has, by its device and number.
fn held_by_identity(app: &App) -> HashMap<(u64, u64), Vec<String>> {
    let held: Vec<Resource> = app.registrar.read(|state| {
        let leases = state.file_sessions().flat_map(|session| state.leases_of_holder(&session.id));
        leases.map(|lease| lease.resource.clone()).collect()
    });
    let mut found: HashMap<_, Vec<String>> = HashMap::new();
    for resource in held {
        if let Some(identity) = FilesApi::identity_of(app, &resource) {
            found.entry(identity).or_default().push(resource.as_str().to_owned());
        }
    }
    found
}
