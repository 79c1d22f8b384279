//! Verbs that take files away, or elsewhere.

use std::ffi::OsString;

use super::GitOperation;
use super::options::OptionSpec;

const CLEAN: OptionSpec =
    OptionSpec { letters: "qnfide:xX", names: "quiet dry-run force interactive exclude=" };
const REMOVE: OptionSpec = OptionSpec {
    letters: "nqfr",
    names: "dry-run quiet cached force ignore-unmatch sparse pathspec-from-file= pathspec-file-nul",
};
const MOVE: OptionSpec = OptionSpec { letters: "vnfk", names: "verbose dry-run force sparse" };
const WORKTREE: OptionSpec = OptionSpec { letters: "f", names: "force" };
const DEINIT: OptionSpec = OptionSpec { letters: "qf", names: "quiet force all" };

/// What `clean` takes away.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(in super::super) struct CleanOptions {
    /// Without that, it does something only if a setting says so.
    pub is_forced: bool,
    pub folders: bool,
    /// Repositories too: it was forced twice.
    pub repositories: bool,
    pub ignored: IgnoredFilesMode,
    /// What is taken for ignored besides.
    pub excluded: Vec<OsString>,
    pub paths: Vec<OsString>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum IgnoredFilesMode {
    #[default]
    Keep,
    Remove,
    /// They go and the others stay.
    RemoveOnly,
}

pub(super) fn parse_clean(rest: &[OsString]) -> Option<GitOperation> {
    let read = CLEAN.parse(rest);
    if read.is_enabled(&["n", "dry-run"]) && !read.is_unclear {
        return None;
    }
    let forces = read.options.iter().filter(|(name, _)| name == "f" || name == "force").count();
    let ignored = match (read.is_enabled(&["X"]), read.is_enabled(&["x"]) || read.is_unclear) {
        (_, true) => IgnoredFilesMode::Remove,
        (true, false) => IgnoredFilesMode::RemoveOnly,
        (false, false) => IgnoredFilesMode::Keep,
    };
    Some(GitOperation::Clean(CleanOptions {
        is_forced: read.is_enabled(&["f", "force", "i", "interactive"]) || read.is_unclear,
        folders: read.is_enabled(&["d"]) || read.is_unclear,
        repositories: forces > 1 || read.is_unclear,
        ignored,
        excluded: if read.is_unclear { Vec::new() } else { read.values(&["e", "exclude"]) },
        paths: read.paths(),
    }))
}

pub(super) fn parse_rm(rest: &[OsString]) -> Option<GitOperation> {
    let read = REMOVE.parse(rest);
    let stays = read.is_enabled(&["n", "dry-run"]) || read.is_enabled(&["cached"]);
    (!stays).then(|| GitOperation::Remove { paths: read.paths() })
}

/// The last word is where the others go. They are names and no patterns.
pub(super) fn parse_mv(rest: &[OsString]) -> Option<GitOperation> {
    let read = MOVE.parse(rest);
    if read.is_enabled(&["n", "dry-run"]) {
        return None;
    }
    let mut sources: Vec<_> = read.words.into_iter().chain(read.after.into_iter().flatten()).collect();
    let destination = sources.pop()?;
    (!sources.is_empty()).then_some(GitOperation::Move { sources, destination })
}

pub(super) fn parse_sparse_checkout(rest: &[OsString]) -> Option<GitOperation> {
    let subcommand = rest.first().and_then(|word| word.to_str());
    (!matches!(subcommand, Some("list" | "check-rules") | None)).then_some(GitOperation::Everything)
}

pub(super) fn parse_worktree(rest: &[OsString]) -> Option<GitOperation> {
    let (subcommand, rest) = rest.split_first()?;
    let read = WORKTREE.parse(rest);
    let tree = read.words.into_iter().chain(read.after.into_iter().flatten()).next()?;
    (subcommand == "remove").then_some(GitOperation::WorktreeRemove { tree })
}

/// What `update` does inside a submodule, git does with other processes of git, there. `deinit` removes it by itself.
pub(super) fn parse_submodule(rest: &[OsString]) -> Option<GitOperation> {
    let at = rest.iter().position(|word| !word.as_encoded_bytes().starts_with(b"-"))?;
    if rest[at] != "deinit" {
        return None;
    }
    let read = DEINIT.parse(&rest[at + 1..]);
    let is_all = read.is_enabled(&["all"]) || read.is_unclear;
    let paths = if is_all { Vec::new() } else { read.paths() };
    (is_all || !paths.is_empty()).then_some(GitOperation::Deinit { paths })
}
