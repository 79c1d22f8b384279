//! From paths as an agent wrote them to files by all the names that lead to them.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use tenure_core::kernel::{FileRequest, Resource};
use tenure_host::paths::{FileKey, PathError, PathTarget, WorkTree, target_of, target_of_nofollow, unescape};

use super::FilesApi;
use crate::app::App;
use crate::http::response::HttpError;
use crate::leases::nonce;

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

const MAX_TREES: usize = 1_000;

/// Every working tree that was met. What is forgotten costs people a path to read, and nothing else.
pub(super) struct WorkTreeRegistry {
    file: PathBuf,
    roots: Mutex<BTreeMap<String, PathBuf>>,
}

/// A file as its name in the ledger says it.
pub(super) struct ResourcePath {
    /// The working tree, if it is known.
    pub(super) root: Option<PathBuf>,
    pub(super) relative: PathBuf,
}

impl ResourcePath {
    /// The whole path, if the tree is known.
    pub(super) fn absolute(&self) -> Option<PathBuf> {
        self.root.as_ref().map(|root| root.join(&self.relative))
    }

    pub(super) fn display(&self) -> String {
        self.relative.to_string_lossy().into_owned()
    }
}

impl WorkTreeRegistry {
    pub(super) fn open(folder: &Path) -> Self {
        let file = folder.join("trees.json");
        // What cannot be read is forgotten: it is met again.
        let roots =
            fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Self { file, roots: Mutex::new(roots) }
    }

    pub(super) fn record(&self, tree: &WorkTree) {
        let mut roots = self.roots.lock();
        if roots.get(&tree.id) == Some(&tree.root) {
            return;
        }
        // What was there before has moved, or is gone: its names must not lead to files of this one.
        roots.retain(|_, root| *root != tree.root);
        if roots.len() >= MAX_TREES {
            roots.retain(|_, root| root.exists());
        }
        roots.insert(tree.id.clone(), tree.root.clone());
        let _ = save(&self.file, &roots);
    }

    /// What a name in the ledger means; nothing if it is no file's, or one more name of a file that has another.
    pub(super) fn locate(&self, resource: &Resource) -> Option<ResourcePath> {
        let (tree, path) = resource.as_str().strip_prefix("FILE:")?.split_once('/')?;
        if path.starts_with(".inode/") {
            return None;
        }
        let roots = self.roots.lock();
        Some(ResourcePath { root: roots.get(tree).cloned(), relative: unescape(path) })
    }
}

fn save(file: &Path, roots: &BTreeMap<String, PathBuf>) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let beside = file.with_extension("new");
    let mut written = fs::File::create(&beside)?;
    written.write_all(&serde_json::to_vec(roots)?)?;
    fs::rename(beside, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_of_a_replaced_worktree_has_no_path() {
        let folder = tempfile::tempdir().unwrap();
        let trees = WorkTreeRegistry::open(folder.path());
        let tree =
            |id: &str| WorkTree { id: id.into(), root: "/project".into(), git_dir: "/project/.git".into() };
        let path =
            |id: &str| trees.locate(&Resource::parse(&format!("FILE:{id}/a")).unwrap()).unwrap().absolute();
        trees.record(&tree("old"));
        assert_eq!(path("old"), Some("/project/a".into()));
        trees.record(&tree("new"));
        assert_eq!((path("old"), path("new")), (None, Some("/project/a".into())));
    }
}
