//! What changes if other commits are brought here: `merge`, `stash pop`, `rebase`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::super::GitError;
use super::super::command_line::parse_merge_options;
use super::file_lists::Paths;
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
