//! Verbs that put files in the place of others, or take them away.

use std::ffi::OsString;

use super::GitOperation;
use super::options::{OptionSpec, ParsedOptions};

const STASH: OptionSpec = OptionSpec {
    letters: "pSkquam:U:",
    names: "patch staged keep-index quiet include-untracked all message= pathspec-from-file= pathspec-file-nul \
            unified= inter-hunk-context=",
};
const RESET: OptionSpec = OptionSpec {
    letters: "qpNU:",
    names: "quiet no-refresh mixed soft hard merge keep recurse-submodules? patch intent-to-add \
            pathspec-from-file= pathspec-file-nul unified= inter-hunk-context= auto-advance",
};
const CHECKOUT: OptionSpec = OptionSpec {
    letters: "b:B:lqmdt?f23pU:",
    names: "guess overlay quiet recurse-submodules? progress merge conflict= detach track? force orphan= \
            overwrite-ignore ignore-other-worktrees ours theirs patch ignore-skip-worktree-bits \
            pathspec-from-file= pathspec-file-nul unified= inter-hunk-context= auto-advance",
};
const SWITCH: OptionSpec = OptionSpec {
    letters: "c:C:qmdt?f",
    names: "create= force-create= guess discard-changes quiet recurse-submodules? progress merge conflict= detach \
            track? force orphan= overwrite-ignore ignore-other-worktrees",
};
const RESTORE: OptionSpec = OptionSpec {
    letters: "s:SWqm23pU:",
    names: "source= staged worktree ignore-unmerged overlay quiet recurse-submodules? progress merge conflict= ours \
            theirs patch ignore-skip-worktree-bits pathspec-from-file= pathspec-file-nul unified= \
            inter-hunk-context= auto-advance",
};
const READ_TREE: OptionSpec = OptionSpec {
    letters: "muinvq",
    names: "index-output= empty verbose trivial aggressive reset prefix= exclude-per-directory= dry-run \
            no-sparse-checkout debug-unpack recurse-submodules? quiet",
};
const CHECKOUT_INDEX: OptionSpec = OptionSpec {
    letters: "afqnuz",
    names: "all ignore-skip-worktree-bits force quiet no-create index stdin temp prefix= stage=",
};

pub(super) fn parse_stash(rest: &[OsString]) -> Option<GitOperation> {
    let subcommand = rest.first().and_then(|word| word.to_str()).filter(|word| !word.starts_with('-'));
    let read = |from: usize| STASH.parse(rest.get(from..).unwrap_or_default());
    match subcommand {
        Some("list" | "show" | "drop" | "clear" | "create" | "store" | "export" | "import") => None,
        Some("pop" | "apply") => {
            let known = OptionSpec { letters: "q", names: "index quiet" };
            let read = known.parse(&rest[1..]);
            let stash = read.words.into_iter().chain(read.after.into_iter().flatten()).next();
            Some(GitOperation::StashApply { stash, is_branch: false })
        }
        Some("branch") => {
            let mut words = rest[1..].iter().filter(|word| !word.as_encoded_bytes().starts_with(b"-"));
            Some(GitOperation::StashApply { stash: words.nth(1).cloned(), is_branch: true })
        }
        // Its words are a message.
        Some("save") => Some(stash_push(&read(1), Vec::new())),
        Some("push") => Some(stash_push(&read(1), read(1).paths())),
        _ => Some(stash_push(&read(0), read(0).paths())),
    }
}

fn stash_push(read: &ParsedOptions, paths: Vec<OsString>) -> GitOperation {
    // An option that is not known may mean more.
    let ignored = read.is_enabled(&["a", "all"]) || read.is_unclear;
    let untracked = read.is_enabled(&["u", "include-untracked"]) || ignored;
    GitOperation::Discard { untracked, ignored, paths }
}

pub(super) fn parse_reset(rest: &[OsString]) -> Option<GitOperation> {
    let read = RESET.parse(rest);
    let to = read.words.first().cloned();
    // Several: git takes the last, and the first of these changes the most.
    if read.is_present(&["hard"]) {
        Some(GitOperation::ResetHard { to })
    } else if read.is_present(&["merge"]) {
        Some(GitOperation::ResetMerge { to })
    } else {
        read.is_present(&["keep"]).then_some(GitOperation::ResetKeep { to })
    }
}

pub(super) fn parse_checkout(rest: &[OsString]) -> Option<GitOperation> {
    let read = CHECKOUT.parse(rest);
    let is_forced = read.is_enabled(&["f", "force"]) || read.is_unclear;
    let is_merged = read.is_present(&["m", "merge", "conflict"]);
    let makes_branch = read.is_present(&["b", "B", "orphan"]);
    // Which paths, stands in a file or is not understood: all of them.
    let is_open = read.is_present(&["pathspec-from-file"]) || read.is_unclear;
    if makes_branch && read.after.as_ref().is_none_or(Vec::is_empty) {
        return switch_operation(read.words.into_iter().next(), is_forced || is_merged);
    }
    let words = read.words.clone();
    let after = if is_open { Some(Vec::new()) } else { read.after.clone() };
    // Nothing to go to, nothing to throw away. (`--patch` asks about all that is dirty.)
    let has_aim = !words.is_empty() || after.as_ref().is_some_and(|after| !after.is_empty());
    if !has_aim && !is_forced && !is_merged && !is_open && !read.is_present(&["p", "patch"]) {
        return None;
    }
    let is_forced = is_forced || is_open || read.is_present(&["p", "patch"]);
    Some(GitOperation::Checkout { words, after, is_forced, is_merged })
}

pub(super) fn parse_switch(rest: &[OsString]) -> Option<GitOperation> {
    let read = SWITCH.parse(rest);
    // A branch without a beginning has no files.
    if read.is_enabled(&["orphan"]) {
        return Some(GitOperation::Everything);
    }
    let is_forced =
        read.is_enabled(&["f", "force", "discard-changes"]) || read.is_present(&["m", "merge", "conflict"]);
    let words = read.words.into_iter().chain(read.after.into_iter().flatten()).next();
    switch_operation(words, is_forced || read.is_unclear)
}

fn switch_operation(to: Option<OsString>, is_forced: bool) -> Option<GitOperation> {
    (to.is_some() || is_forced).then_some(GitOperation::Switch { to, is_forced })
}

pub(super) fn parse_restore(rest: &[OsString]) -> Option<GitOperation> {
    let read = RESTORE.parse(rest);
    let only_staged = read.is_enabled(&["S", "staged"]) && !read.is_present(&["W", "worktree"]);
    if only_staged && !read.is_unclear {
        return None;
    }
    // With the index, it is HEAD that counts.
    let head = (read.is_enabled(&["S", "staged"]) || read.is_unclear).then(|| "HEAD".into());
    Some(GitOperation::Restore {
        source: read.value(&["s", "source"]).map(Into::into).or(head),
        is_merged: read.is_present(&["m", "merge", "conflict"]),
        paths: read.paths(),
    })
}

pub(super) fn parse_read_tree(rest: &[OsString]) -> Option<GitOperation> {
    let read = READ_TREE.parse(rest);
    let touches_files = read.is_enabled(&["u"]) || read.is_unclear;
    if !touches_files || read.is_enabled(&["n", "dry-run"]) {
        return None;
    }
    // Under a prefix, nobody knows better.
    let is_elsewhere = read.is_present(&["prefix"]);
    let is_reset = read.is_present(&["reset"]) || read.is_unclear;
    Some(if is_elsewhere {
        GitOperation::Everything
    } else {
        GitOperation::ReadTree { trees: read.words, is_reset }
    })
}

/// Without `-f` it only makes what is not there.
pub(super) fn parse_checkout_index(rest: &[OsString]) -> Option<GitOperation> {
    let read = CHECKOUT_INDEX.parse(rest);
    let overwrites = read.is_enabled(&["f", "force"]) || read.is_unclear;
    let is_elsewhere = read.is_enabled(&["temp"]);
    let is_all = read.is_present(&["a", "all", "stdin", "prefix"]);
    let files = if is_all { Vec::new() } else { read.paths() };
    (overwrites && !is_elsewhere).then_some(GitOperation::CheckoutIndex { files })
}

/// Whether this verb goes on into submodules; nothing if that depends on what is set.
pub(super) fn recurses_into_submodules(verb: &str, rest: &[OsString]) -> Option<bool> {
    let known = match verb {
        "reset" => RESET,
        "checkout" => CHECKOUT,
        "switch" => SWITCH,
        "restore" => RESTORE,
        "read-tree" => READ_TREE,
        _ => return Some(false),
    };
    const RECURSE_OPTIONS: [&str; 2] = ["recurse-submodules", "no-recurse-submodules"];
    let read = known.parse(rest);
    let (name, value) = read.options.iter().rfind(|(name, _)| RECURSE_OPTIONS.contains(&name.as_str()))?;
    let says_no = |value: &OsString| ["no", "false", "off", "0"].iter().any(|no| value == no);
    Some(name == RECURSE_OPTIONS[0] && !value.as_ref().is_some_and(says_no))
}
