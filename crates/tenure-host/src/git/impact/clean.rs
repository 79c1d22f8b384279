//! What `clean` takes away.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::super::GitError;
use super::super::command_line::{CleanOptions, GitOperation, IgnoredFilesMode};
use super::file_lists::Paths;
use super::repository_context::RepositoryContext;

impl RepositoryContext {
    pub fn clean_impact(&self, clean: &CleanOptions) -> Result<Paths, GitError> {
        if !self.will_clean(clean)? {
            return Ok(Paths::new());
        }
        let mut more: Vec<_> = clean.excluded.iter().map(|pattern| joined("--exclude=", pattern)).collect();
        // With a path, folders are looked into anyway.
        let only_files = !clean.folders && clean.paths.is_empty();
        let folders = only_files.then(|| OsString::from("--directory"));
        more.extend(folders.clone());
        let for_us: Vec<_> = folders.into_iter().collect();
        // What is ignored is nobody's: by what the gate takes for ignored, whatever the agent says is.
        let gone = match clean.ignored {
            IgnoredFilesMode::Keep => self.untracked_paths(&more, &clean.paths)?,
            IgnoredFilesMode::Remove => {
                let mut gone = self.untracked_paths_by_own_settings(&more, &clean.paths)?;
                gone.extend(self.untracked_paths(&more, &clean.paths)?);
                gone
            }
            IgnoredFilesMode::RemoveOnly => {
                let stays = self.untracked_paths(&more, &clean.paths)?;
                let mut gone = self.untracked_paths_by_own_settings(&for_us, &clean.paths)?;
                gone.retain(|path| !stays.contains(path));
                gone
            }
        };
        let is_folder = |path: &Path| self.root.join(path).symlink_metadata().is_ok_and(|kind| kind.is_dir());
        // Repositories stay, unless it was forced twice.
        let stays = |path: &Path| (only_files || !clean.repositories) && is_folder(path);
        Ok(gone.into_iter().filter(|path| !stays(path)).collect())
    }

    /// Ignored files and folders that go away.
    pub fn ignored_removed_by(&self, verb: &GitOperation) -> Result<Paths, GitError> {
        match verb {
            GitOperation::Clean(clean)
                if clean.ignored != IgnoredFilesMode::Keep && self.will_clean(clean)? =>
            {
                self.ignored_paths(&clean.paths, None)
            }
            GitOperation::Discard { ignored: true, paths, .. } => self.ignored_paths(paths, Some(":/")),
            GitOperation::WorktreeRemove { .. } => self.ignored_paths(&[], Some(":/")),
            _ => Ok(Paths::new()),
        }
    }

    fn will_clean(&self, clean: &CleanOptions) -> Result<bool, GitError> {
        Ok(clean.is_forced || !self.config_bool("clean.requireforce", true)?)
    }
}

fn joined(option: &str, value: &OsString) -> OsString {
    let mut joined = OsString::from(option);
    joined.push(value);
    joined
}

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
