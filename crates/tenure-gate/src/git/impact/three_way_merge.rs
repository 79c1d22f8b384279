//! What a merge changes: where the others changed something, and where that ends up if a name was changed meanwhile.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::GitError;
use super::file_lists::{Paths, lines};
use super::repository_context::RepositoryContext;

/// More commits than this are not looked at one by one.
const MAX_COMMITS: usize = 64;

/// Names that are alike enough to be taken for renamed. Git's own limit is higher, so none is missed.
const RENAME_THRESHOLD: &str = "-M10%";

impl RepositoryContext {
    /// What changes here if the way from `base` to `theirs` is gone again. No tree is an empty one.
    pub fn three_way_impact(&self, base: Option<&str>, theirs: Option<&str>) -> Result<Paths, GitError> {
        let mut changed = self.diff_trees(base, theirs)?;
        let (Some(base), false) = (base, changed.is_empty()) else { return Ok(changed) };
        let ours = self.staged_paths(Some(base), &[])?;
        if ours.is_empty() {
            return Ok(changed);
        }
        // They changed a file that has another name here.
        let Some(renamed) = RenameMap::read(self, "diff-index", ["--cached", base])? else {
            return Ok(changed.into_iter().chain(self.everything_impact()?).collect());
        };
        let carried: Vec<_> = changed.iter().flat_map(|path| renamed.current_names(path)).collect();
        // They gave another name to a folder in which something is new here.
        if let Some(theirs) = theirs {
            let Some(renamed) = RenameMap::read(self, "diff-tree", [base, theirs])? else {
                return Ok(changed.into_iter().chain(self.everything_impact()?).collect());
            };
            for path in &ours {
                let now = renamed.current_names(path);
                if !now.is_empty() {
                    changed.insert(path.clone());
                    changed.extend(now);
                }
            }
        }
        changed.extend(carried);
        Ok(changed)
    }

    /// What changes if these commits are picked, or undone; nothing if they are too many to say.
    pub fn cherry_pick_impact(
        &self,
        commits: &[OsString],
        is_backwards: bool,
    ) -> Result<Option<Paths>, GitError> {
        let commits =
            commits.iter().map(|word| if word == "-" { OsString::from("@{-1}") } else { word.clone() });
        let options = ["--no-walk=unsorted", "--parents", "--end-of-options"].map(OsString::from);
        let output = match self.query("rev-list", options.into_iter().chain(commits)).output() {
            // No such commit: git will say so too.
            Err(GitError::Failed { .. }) => return Ok(Some(Paths::new())),
            output => lines(&output?),
        };
        if output.len() > MAX_COMMITS {
            return Ok(None);
        }
        let mut changed = Paths::new();
        for line in output {
            let mut ids = line.split(' ');
            let commit = ids.next();
            let parents: Vec<_> = ids.map(Some).collect();
            for parent in if parents.is_empty() { vec![None] } else { parents } {
                let (base, theirs) = if is_backwards { (commit, parent) } else { (parent, commit) };
                changed.extend(self.three_way_impact(base, theirs)?);
            }
        }
        Ok(Some(changed))
    }
}

#[derive(Default)]
struct RenameMap {
    files: BTreeMap<PathBuf, Vec<PathBuf>>,
    folders: BTreeMap<PathBuf, Vec<PathBuf>>,
}

impl RenameMap {
    /// Nothing if it cannot be said: of a repository that was cloned in part, contents are not here, and nobody is asked for them.
    fn read(
        context: &RepositoryContext,
        subcommand: &'static str,
        trees: [&str; 2],
    ) -> Result<Option<Self>, GitError> {
        let options =
            ["-r", RENAME_THRESHOLD, "--diff-filter=R", "--name-status", "-z", "--no-relative"].into_iter();
        let listed = match context.query(subcommand, options.chain(trees).chain(["--"])).output() {
            Err(GitError::Failed { .. }) => return Ok(None),
            listed => listed?,
        };
        let mut renamed = Self::default();
        let mut words = listed.split(|byte| *byte == 0);
        while let (Some(_), Some(old), Some(new)) = (words.next(), words.next(), words.next()) {
            renamed.add(Path::new(OsStr::from_bytes(old)), Path::new(OsStr::from_bytes(new)));
        }
        Ok(Some(renamed))
    }

    /// A file, its folder, and the folders above as far as they are called the same.
    fn add(&mut self, old: &Path, new: &Path) {
        self.files.entry(old.into()).or_default().push(new.into());
        let (mut from, mut to) = (old.parent(), new.parent());
        while let (Some(one), Some(other)) = (from, to) {
            if one == other {
                break;
            }
            let known = self.folders.entry(one.into()).or_default();
            if !known.iter().any(|known| known == other) {
                known.push(other.into());
            }
            if one.file_name() != other.file_name() {
                break;
            }
            (from, to) = (one.parent(), other.parent());
        }
    }

    /// What this name may be now.
    fn current_names(&self, path: &Path) -> Vec<PathBuf> {
        let mut now: Vec<_> = self.files.get(path).cloned().unwrap_or_default();
        for folder in path.ancestors().skip(1) {
            let Ok(rest) = path.strip_prefix(folder) else { continue };
            now.extend(self.folders.get(folder).into_iter().flatten().map(|other| other.join(rest)));
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_folder_renames_the_files_below_it() {
        let mut renamed = RenameMap::default();
        renamed.add(Path::new("a/x/one"), Path::new("b/x/two"));
        let now = |path: &str| renamed.current_names(Path::new(path));
        assert_eq!(now("a/x/one"), ["b/x/two", "b/x/one", "b/x/one"].map(PathBuf::from));
        assert_eq!(now("a/x/y/new"), ["b/x/y/new", "b/x/y/new"].map(PathBuf::from));
        assert_eq!(now("a/other"), ["b/other"].map(PathBuf::from));
        assert!(now("c").is_empty());
    }
}
