//! Repositories inside the tree. Some verbs take them away with all that is in them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::GitError;
use super::file_lists::Paths;
use super::repository_context::RepositoryContext;

/// Deeper than that, nobody keeps repositories in repositories.
const MAX_DEPTH: usize = 8;

/// Where a tree says which submodules it has.
const GITMODULES: &str = ".gitmodules";

impl RepositoryContext {
    /// The submodules among these paths; all of them if none is named.
    pub fn submodules(&self, paths: &[OsString]) -> Result<Paths, GitError> {
        let listed = self.query_paths("ls-files", &["-s", "-z", "--full-name"], paths, Some(":/"))?;
        let names = listed.split(|byte| *byte == 0).filter_map(|line| {
            let name = line.splitn(2, |byte| *byte == b'\t').nth(1)?;
            line.starts_with(b"160000 ").then(|| PathBuf::from(OsStr::from_bytes(name)))
        });
        Ok(names.collect())
    }

    /// The file in which git notes what becomes of submodules, if some of these are.
    pub fn gitmodules_file(&self, paths: &[OsString]) -> Result<Option<PathBuf>, GitError> {
        let is_noted = self.root.join(GITMODULES).exists() && !self.submodules(paths)?.is_empty();
        Ok(is_noted.then(|| GITMODULES.into()))
    }

    /// With the files of a repository in the place of its folder; and what is ignored in there.
    pub fn expand_nested(&self, paths: Paths) -> Result<(Paths, Paths), GitError> {
        let (mut files, mut ignored) = (Paths::new(), Paths::new());
        for path in paths {
            self.collect_nested_files(path, MAX_DEPTH, &mut files, &mut ignored)?;
        }
        Ok((files, ignored))
    }

    fn collect_nested_files(
        &self,
        path: PathBuf,
        depth: usize,
        files: &mut Paths,
        ignored: &mut Paths,
    ) -> Result<(), GitError> {
        let folder = self.root.join(&path);
        let Some(nested) = self.nested_repository(&folder).filter(|_| depth > 0) else {
            files.insert(path);
            return Ok(());
        };
        for file in nested.tracked_paths(&[])?.into_iter().chain(nested.untracked_paths(&[], &[])?) {
            self.collect_nested_files(path.join(file), depth - 1, files, ignored)?;
        }
        ignored.extend(nested.ignored_paths(&[], None)?.into_iter().map(|inside| path.join(inside)));
        Ok(())
    }

    /// The repository whose top this folder is. One that git does not want to look at is none.
    fn nested_repository(&self, folder: &Path) -> Option<RepositoryContext> {
        let kind = folder.symlink_metadata().ok()?;
        if !kind.is_dir() || folder.join(".git").symlink_metadata().is_err() {
            return None;
        }
        let nested = self.for_folder(folder).ok()??;
        (nested.root == folder.canonicalize().ok()?).then_some(nested)
    }
}
