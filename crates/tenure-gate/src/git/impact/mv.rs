//! What `mv` moves: all that is below its sources, under both names.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use super::super::GitError;
use super::file_lists::Paths;
use super::repository_context::RepositoryContext;

impl RepositoryContext {
    pub fn mv_impact(&self, sources: &[OsString], destination: &OsStr) -> Result<Paths, GitError> {
        let Some(to) = self.path_in_tree(destination) else { return Ok(Paths::new()) };
        let is_folder = self.root.join(&to).symlink_metadata().is_ok_and(|kind| kind.is_dir());
        let mut changed = Paths::new();
        for source in sources {
            let Some(from) = self.path_in_tree(source).filter(|from| !from.as_os_str().is_empty()) else {
                continue;
            };
            let to = match from.file_name() {
                Some(name) if is_folder || sources.len() > 1 => to.join(name),
                _ => to.clone(),
            };
            let (files, _) = self.expand_nested(self.files_below(&[from.clone().into()])?)?;
            for file in files {
                let Ok(below) = file.strip_prefix(&from) else { continue };
                changed.insert(if below.as_os_str().is_empty() { to.clone() } else { to.join(below) });
                changed.insert(file);
            }
            let mut pattern = OsString::from(":(top,literal)");
            pattern.push(&from);
            changed.extend(self.gitmodules_file(&[pattern])?);
        }
        Ok(changed)
    }

    /// Where a name is, from the top of the tree. Nothing if it is outside.
    fn path_in_tree(&self, name: &OsStr) -> Option<PathBuf> {
        let mut path = self.folder.canonicalize().ok()?;
        for component in Path::new(name).components() {
            match component {
                Component::ParentDir => drop(path.pop()),
                component => path.push(component),
            }
        }
        Some(path.components().collect::<PathBuf>().strip_prefix(&self.root).ok()?.to_owned())
    }
}
