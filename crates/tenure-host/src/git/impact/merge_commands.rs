//! What changes if other commits are brought here: `merge`, `stash pop`, `rebase`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::GitError;
use super::super::command_line::{SequencerAction, parse_merge_options};
use super::file_lists::{Paths, lines};
use super::repository_context::RepositoryContext;

impl RepositoryContext {
    pub fn merge_impact(&self, with: &[OsString], autostash: Option<bool>) -> Result<Paths, GitError> {
        let (set, is_elsewhere) = parse_merge_options(&self.merge_options()?);
        if is_elsewhere {
            return self.everything_impact();
        }
        let autostash = autostash.or(set);
        let stashes = autostash.map_or_else(|| self.config_bool("merge.autostash", false), Ok)?;
        let mut changed = if stashes { self.dirty_paths(false, &[])? } else { Paths::new() };
        let upstream = [OsString::from("@{upstream}")];
        let mut commits = Vec::new();
        for word in if with.is_empty() { &upstream } else { with } {
            commits.extend(self.resolve_commit(word)?);
            // Several branches may have been fetched at once.
            if word == "FETCH_HEAD" {
                commits.extend(self.fetch_heads()?);
            }
        }
        for commit in commits {
            let head = self.head.as_deref();
            let bases = head.map(|head| self.merge_bases(head, &commit)).transpose()?.unwrap_or_default();
            if bases.is_empty() {
                changed.extend(self.diff_trees(head, Some(&commit))?);
            }
            for base in bases {
                changed.extend(self.three_way_impact(Some(&base), Some(&commit))?);
            }
        }
        Ok(changed)
    }

    pub fn stash_apply_impact(&self, stash: Option<&OsStr>, is_branch: bool) -> Result<Paths, GitError> {
        let name = match stash {
            None => "refs/stash".into(),
            Some(word) if word.as_bytes().iter().all(u8::is_ascii_digit) => {
                let mut name = OsString::from("stash@{");
                name.push(word);
                name.push("}");
                name
            }
            Some(word) => word.to_owned(),
        };
        let Some(stash) = self.resolve_commit(&name)? else { return Ok(Paths::new()) };
        let parent = |number: u8| self.resolve_commit(OsStr::new(&format!("{stash}^{number}")));
        let (base, index, untracked) = (parent(1)?, parent(2)?, parent(3)?);
        let mut changed = self.three_way_impact(base.as_deref(), Some(&stash))?;
        changed.extend(self.diff_trees(base.as_deref(), index.as_deref().or(base.as_deref()))?);
        changed.extend(self.diff_trees(None, untracked.as_deref())?);
        if is_branch {
            changed.extend(self.diff_trees(self.head.as_deref(), base.as_deref())?);
        }
        Ok(changed)
    }

    pub fn rebase_impact(
        &self,
        onto: Option<&OsStr>,
        upstream: Option<&OsStr>,
        branch: Option<&OsStr>,
    ) -> Result<Paths, GitError> {
        let mut changed = self.dirty_paths(false, &[])?;
        let upstream = upstream.unwrap_or(OsStr::new("@{upstream}"));
        let onto = self.resolve_commit(onto.unwrap_or(upstream))?;
        let upstream = self.resolve_commit(upstream)?;
        let ours = branch.map_or_else(|| Ok(self.head.clone()), |branch| self.resolve_commit(branch))?;
        changed.extend(self.diff_trees(self.head.as_deref(), ours.as_deref().or(self.head.as_deref()))?);
        let (Some(ours), Some(upstream), Some(onto)) = (ours, upstream, onto) else { return Ok(changed) };
        changed.extend(self.diff_trees(Some(&ours), Some(&onto))?);
        // It may stop at any of the commits that it takes along.
        let range = OsString::from(format!("{upstream}..{ours}"));
        match self.cherry_pick_impact(&[range], false)? {
            Some(picked) => changed.extend(picked),
            None => changed.extend(self.tracked_paths(&[])?),
        }
        Ok(changed)
    }
}

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

/// Where git notes the commits that it goes back or on to.
const END_COMMIT_FILES: [&str; 6] = [
    "sequencer/head",
    "rebase-merge/orig-head",
    "rebase-merge/onto",
    "rebase-apply/orig-head",
    "rebase-apply/onto",
    "rebase-apply/abort-safety",
];
/// Where it notes what is left to do.
const SEQUENCER_TODO: &str = "sequencer/todo";
const REBASE_TODO: &str = "rebase-merge/git-rebase-todo";

impl RepositoryContext {
    /// A rebase or patches: what is dirty, what lies between here and where it began or would end, and what is left to do.
    pub fn resume_impact(&self) -> Result<Paths, GitError> {
        let mut changed = self.dirty_paths(false, &[])?;
        let mut ends = END_COMMIT_FILES.to_vec();
        // Patches that are given up go back to here.
        if self.rev_parse_path("--absolute-git-dir")?.join("rebase-apply").exists() {
            ends.push("ORIG_HEAD");
        }
        for end in ends {
            if let Some(commit) = self.resolve_commit(self.read_git_file(end)?.trim().as_ref())? {
                changed.extend(self.diff_trees(self.head.as_deref(), Some(&commit))?);
            }
        }
        changed.extend(self.remaining_todo_impact(&[SEQUENCER_TODO, REBASE_TODO])?);
        Ok(changed)
    }

    /// A merge that is given up is `reset --merge`: what is dirty and not staged stays. Unless something was put away for it, which
    /// comes back.
    pub fn merge_abort_impact(&self) -> Result<Paths, GitError> {
        let stash = self.read_git_file("MERGE_AUTOSTASH")?;
        let mut changed = self.staged_paths(self.head.as_deref(), &[])?;
        if !stash.is_empty() {
            changed.extend(self.dirty_paths(false, &[])?);
            changed.extend(self.stash_apply_impact(Some(stash.trim().as_ref()), false)?);
        }
        Ok(changed)
    }

    /// A series of picks. Giving up and passing over is `reset --merge`: what is dirty and not staged stays.
    pub fn sequencer_impact(&self, how: SequencerAction) -> Result<Paths, GitError> {
        let mut changed = Paths::new();
        if how.aborts || how.skips {
            changed.extend(self.staged_paths(self.head.as_deref(), &[])?);
        }
        if how.aborts
            && let Some(begin) = self.resolve_commit(self.read_git_file("sequencer/head")?.trim().as_ref())?
        {
            changed.extend(self.staged_paths(Some(&begin), &[])?);
        }
        if how.skips || how.continues {
            changed.extend(self.remaining_todo_impact(&[SEQUENCER_TODO])?);
        }
        Ok(changed)
    }

    fn remaining_todo_impact(&self, lists: &[&str]) -> Result<Paths, GitError> {
        let mut todo = String::new();
        for list in lists {
            todo += &self.read_git_file(list)?;
        }
        let is_backwards = todo.starts_with("revert");
        // `pick ID …`, `fixup -C ID …`; what is no id is passed over.
        let words = todo.lines().flat_map(|line| line.split(' ').skip(1).take(2));
        let is_id = |word: &&str| word.len() >= 4 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut commits = Vec::new();
        for word in words.filter(is_id) {
            commits.extend(self.resolve_commit(word.as_ref())?.map(OsString::from));
        }
        if commits.is_empty() {
            return Ok(Paths::new());
        }
        self.cherry_pick_impact(&commits, is_backwards)?.map_or_else(|| self.tracked_paths(&[]), Ok)
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
