//! From paths as an agent wrote them to files by all the names that lead to them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use tenure_core::kernel::{FileWant, Resource};
use tenure_gate::paths::{FileKey, PathError, Target, entry_of, target_of};

use super::FileFace;
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::leases::nonce;

/// What somebody asked for, by its names.
#[derive(Clone)]
pub(super) struct Wished {
    pub(super) cwd: PathBuf,
    pub(super) paths: Vec<String>,
    pub(super) entries: Vec<String>,
}

/// The files that these paths reach, each once. What is outside of every working tree is left out.
///
/// It looks at the disk, so not on a thread that others wait for.
pub(super) fn find(app: &App, wished: &Wished) -> Result<Vec<FileKey>, Failure> {
    let mut files: BTreeMap<String, FileKey> = BTreeMap::new();
    let mut add = |field: &str, index: usize, found: Result<Target, PathError>| {
        let wrong = |error: PathError| Failure::invalid(&format!("{field}[{index}]"), &error.to_string());
        if let Target::File(key) = found.map_err(wrong)? {
            app.files.trees.note(&key.tree);
            files.insert(key.resource.clone(), key);
        }
        Ok::<_, Failure>(())
    };
    for (index, path) in wished.paths.iter().enumerate() {
        add("paths", index, target_of(Path::new(path), &wished.cwd))?;
    }
    for (index, path) in wished.entries.iter().enumerate() {
        add("entries", index, entry_of(&wished.cwd.join(path)))?;
    }
    let mut files: Vec<FileKey> = files.into_values().collect();
    add_names_of_links(app, &mut files);
    Ok(files)
}

/// The one file that this absolute path reaches; nothing if it is in no working tree. It looks at the disk.
pub(super) fn one(app: &App, path: &Path) -> Result<Option<FileKey>, PathError> {
    let Target::File(mut file) = target_of(path, Path::new("/"))? else { return Ok(None) };
    app.files.trees.note(&file.tree);
    add_names_of_links(app, std::slice::from_mut(&mut file));
    Ok(Some(file))
}

/// What the kernel is asked for.
pub(super) fn wants(files: &[FileKey]) -> Result<Vec<FileWant>, Failure> {
    files.iter().map(want).collect()
}

pub(super) fn want(file: &FileKey) -> Result<FileWant, Failure> {
    let aliases: Vec<Resource> =
        file.aliases.iter().map(|alias| Resource::parse(alias)).collect::<Result<_, _>>()?;
    let nonces = (0..=aliases.len()).map(|_| nonce()).collect::<Result<_, _>>()?;
    Ok(FileWant { resource: Resource::parse(&file.resource)?, aliases, nonces })
}

pub(super) fn names(file: &FileKey) -> Result<Vec<Resource>, Failure> {
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
        if let Some(identity) = FileFace::identity_of(app, &resource) {
            found.entry(identity).or_default().push(resource.as_str().to_owned());
        }
    }
    found
}
