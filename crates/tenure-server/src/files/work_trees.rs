//! Where working trees are that files belong to: their names in the ledger say only which.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use tenure_core::kernel::Resource;
use tenure_gate::paths::{WorkTree, unescape};

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
