//! What `mv` moves: all that is below its sources, under both names.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use super::super::GitError;
use super::asking::Asked;
use super::lists::Paths;

impl Asked {
    pub fn renamed(&self, sources: &[OsString], destination: &OsStr) -> Result<Paths, GitError> {
        let Some(to) = self.located(destination) else { return Ok(Paths::new()) };
        let is_folder = self.root.join(&to).symlink_metadata().is_ok_and(|kind| kind.is_dir());
        let mut changed = Paths::new();
        for source in sources {
            let Some(from) = self.located(source).filter(|from| !from.as_os_str().is_empty()) else {
                continue;
            };
            let to = match from.file_name() {
                Some(name) if is_folder || sources.len() > 1 => to.join(name),
                _ => to.clone(),
            };
            let (files, _) = self.with_inner_files(self.below(&[from.clone().into()])?)?;
            for file in files {
                let Ok(below) = file.strip_prefix(&from) else { continue };
                changed.insert(if below.as_os_str().is_empty() { to.clone() } else { to.join(below) });
                changed.insert(file);
            }
            let mut pattern = OsString::from(":(top,literal)");
            pattern.push(&from);
            changed.extend(self.list_of_submodules(&[pattern])?);
        }
        Ok(changed)
    }

    /// Where a name is, from the top of the tree. Nothing if it is outside.
    fn located(&self, name: &OsStr) -> Option<PathBuf> {
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
