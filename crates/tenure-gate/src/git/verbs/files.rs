//! Verbs that take files away, or elsewhere.

use std::ffi::OsString;

use super::Verb;
use super::options::Known;

const CLEAN: Known = Known { letters: "qnfide:xX", names: "quiet dry-run force interactive exclude=" };
const REMOVE: Known = Known {
    letters: "nqfr",
    names: "dry-run quiet cached force ignore-unmatch sparse pathspec-from-file= pathspec-file-nul",
};
const MOVE: Known = Known { letters: "vnfk", names: "verbose dry-run force sparse" };
const WORKTREE: Known = Known { letters: "f", names: "force" };
const DEINIT: Known = Known { letters: "qf", names: "quiet force all" };

/// What `clean` takes away.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(in super::super) struct Clean {
    /// Without that, it does something only if a setting says so.
    pub is_forced: bool,
    pub folders: bool,
    /// Repositories too: it was forced twice.
    pub repositories: bool,
    pub ignored: Ignored,
    /// What is taken for ignored besides.
    pub excluded: Vec<OsString>,
    pub paths: Vec<OsString>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Ignored {
    #[default]
    Stay,
    Go,
    /// They go and the others stay.
    GoAlone,
}

pub(super) fn clean(rest: &[OsString]) -> Option<Verb> {
    let read = CLEAN.read(rest);
    if read.has(&["n", "dry-run"]) && !read.is_unclear {
        return None;
    }
    let forces = read.options.iter().filter(|(name, _)| name == "f" || name == "force").count();
    let ignored = match (read.has(&["X"]), read.has(&["x"]) || read.is_unclear) {
        (_, true) => Ignored::Go,
        (true, false) => Ignored::GoAlone,
        (false, false) => Ignored::Stay,
    };
    Some(Verb::Clean(Clean {
        is_forced: read.has(&["f", "force", "i", "interactive"]) || read.is_unclear,
        folders: read.has(&["d"]) || read.is_unclear,
        repositories: forces > 1 || read.is_unclear,
        ignored,
        excluded: if read.is_unclear { Vec::new() } else { read.values(&["e", "exclude"]) },
        paths: read.paths(),
    }))
}

pub(super) fn remove(rest: &[OsString]) -> Option<Verb> {
    let read = REMOVE.read(rest);
    let stays = read.has(&["n", "dry-run"]) || read.has(&["cached"]);
    (!stays).then(|| Verb::Remove { paths: read.paths() })
}

/// The last word is where the others go. They are names and no patterns.
pub(super) fn rename(rest: &[OsString]) -> Option<Verb> {
    let read = MOVE.read(rest);
    if read.has(&["n", "dry-run"]) {
        return None;
    }
    let mut sources: Vec<_> = read.words.into_iter().chain(read.after.into_iter().flatten()).collect();
    let destination = sources.pop()?;
    (!sources.is_empty()).then_some(Verb::Move { sources, destination })
}

pub(super) fn sparse_checkout(rest: &[OsString]) -> Option<Verb> {
    let subcommand = rest.first().and_then(|word| word.to_str());
    (!matches!(subcommand, Some("list" | "check-rules") | None)).then_some(Verb::Everything)
}

pub(super) fn worktree(rest: &[OsString]) -> Option<Verb> {
    let (subcommand, rest) = rest.split_first()?;
    let read = WORKTREE.read(rest);
    let tree = read.words.into_iter().chain(read.after.into_iter().flatten()).next()?;
    (subcommand == "remove").then_some(Verb::WorktreeRemove { tree })
}

/// What `update` does inside a submodule, git does with other processes of git, there. `deinit` removes it by itself.
pub(super) fn submodule(rest: &[OsString]) -> Option<Verb> {
    let at = rest.iter().position(|word| !word.as_encoded_bytes().starts_with(b"-"))?;
    if rest[at] != "deinit" {
        return None;
    }
    let read = DEINIT.read(&rest[at + 1..]);
    let is_all = read.has(&["all"]) || read.is_unclear;
    let paths = if is_all { Vec::new() } else { read.paths() };
    (is_all || !paths.is_empty()).then_some(Verb::Deinit { paths })
}
