//! Verbs that put files in the place of others, or take them away.

use std::ffi::OsString;

use super::Verb;
use super::options::{Known, Read};

const STASH: Known = Known {
    letters: "pSkquam:U:",
    names: "patch staged keep-index quiet include-untracked all message= pathspec-from-file= pathspec-file-nul \
            unified= inter-hunk-context=",
};
const RESET: Known = Known {
    letters: "qpNU:",
    names: "quiet no-refresh mixed soft hard merge keep recurse-submodules? patch intent-to-add \
            pathspec-from-file= pathspec-file-nul unified= inter-hunk-context= auto-advance",
};
const CHECKOUT: Known = Known {
    letters: "b:B:lqmdt?f23pU:",
    names: "guess overlay quiet recurse-submodules? progress merge conflict= detach track? force orphan= \
            overwrite-ignore ignore-other-worktrees ours theirs patch ignore-skip-worktree-bits \
            pathspec-from-file= pathspec-file-nul unified= inter-hunk-context= auto-advance",
};
const SWITCH: Known = Known {
    letters: "c:C:qmdt?f",
    names: "create= force-create= guess discard-changes quiet recurse-submodules? progress merge conflict= detach \
            track? force orphan= overwrite-ignore ignore-other-worktrees",
};
const RESTORE: Known = Known {
    letters: "s:SWqm23pU:",
    names: "source= staged worktree ignore-unmerged overlay quiet recurse-submodules? progress merge conflict= ours \
            theirs patch ignore-skip-worktree-bits pathspec-from-file= pathspec-file-nul unified= \
            inter-hunk-context= auto-advance",
};
const READ_TREE: Known = Known {
    letters: "muinvq",
    names: "index-output= empty verbose trivial aggressive reset prefix= exclude-per-directory= dry-run \
            no-sparse-checkout debug-unpack recurse-submodules? quiet",
};
const CHECKOUT_INDEX: Known = Known {
    letters: "afqnuz",
    names: "all ignore-skip-worktree-bits force quiet no-create index stdin temp prefix= stage=",
};

pub(super) fn stash(rest: &[OsString]) -> Option<Verb> {
    let subcommand = rest.first().and_then(|word| word.to_str()).filter(|word| !word.starts_with('-'));
    let read = |from: usize| STASH.read(rest.get(from..).unwrap_or_default());
    match subcommand {
        Some("list" | "show" | "drop" | "clear" | "create" | "store" | "export" | "import") => None,
        Some("pop" | "apply") => {
            let known = Known { letters: "q", names: "index quiet" };
            let read = known.read(&rest[1..]);
            let stash = read.words.into_iter().chain(read.after.into_iter().flatten()).next();
            Some(Verb::StashApply { stash, is_branch: false })
        }
        Some("branch") => {
            let mut words = rest[1..].iter().filter(|word| !word.as_encoded_bytes().starts_with(b"-"));
            Some(Verb::StashApply { stash: words.nth(1).cloned(), is_branch: true })
        }
        // Its words are a message.
        Some("save") => Some(put_away(&read(1), Vec::new())),
        Some("push") => Some(put_away(&read(1), read(1).paths())),
        _ => Some(put_away(&read(0), read(0).paths())),
    }
}

fn put_away(read: &Read, paths: Vec<OsString>) -> Verb {
    // An option that is not known may mean more.
    let ignored = read.has(&["a", "all"]) || read.is_unclear;
    let untracked = read.has(&["u", "include-untracked"]) || ignored;
    Verb::Lose { untracked, ignored, paths }
}

pub(super) fn reset(rest: &[OsString]) -> Option<Verb> {
    let read = RESET.read(rest);
    let to = read.words.first().cloned();
    // Several: git takes the last, and the first of these changes the most.
    if read.names(&["hard"]) {
        Some(Verb::ResetHard { to })
    } else if read.names(&["merge"]) {
        Some(Verb::ResetMerge { to })
    } else {
        read.names(&["keep"]).then_some(Verb::ResetKeep { to })
    }
}

pub(super) fn checkout(rest: &[OsString]) -> Option<Verb> {
    let read = CHECKOUT.read(rest);
    let is_forced = read.has(&["f", "force"]) || read.is_unclear;
    let is_merged = read.names(&["m", "merge", "conflict"]);
    let makes_branch = read.names(&["b", "B", "orphan"]);
    // Which paths, stands in a file or is not understood: all of them.
    let is_open = read.names(&["pathspec-from-file"]) || read.is_unclear;
    if makes_branch && read.after.as_ref().is_none_or(Vec::is_empty) {
        return switched(read.words.into_iter().next(), is_forced || is_merged);
    }
    let words = read.words.clone();
    let after = if is_open { Some(Vec::new()) } else { read.after.clone() };
    // Nothing to go to, nothing to throw away. (`--patch` asks about all that is dirty.)
    let has_aim = !words.is_empty() || after.as_ref().is_some_and(|after| !after.is_empty());
    if !has_aim && !is_forced && !is_merged && !is_open && !read.names(&["p", "patch"]) {
        return None;
    }
    let is_forced = is_forced || is_open || read.names(&["p", "patch"]);
    Some(Verb::Checkout { words, after, is_forced, is_merged })
}

pub(super) fn switch(rest: &[OsString]) -> Option<Verb> {
    let read = SWITCH.read(rest);
    // A branch without a beginning has no files.
    if read.has(&["orphan"]) {
        return Some(Verb::Everything);
    }
    let is_forced = read.has(&["f", "force", "discard-changes"]) || read.names(&["m", "merge", "conflict"]);
    let words = read.words.into_iter().chain(read.after.into_iter().flatten()).next();
    switched(words, is_forced || read.is_unclear)
}

fn switched(to: Option<OsString>, is_forced: bool) -> Option<Verb> {
    (to.is_some() || is_forced).then_some(Verb::Switch { to, is_forced })
}

pub(super) fn restore(rest: &[OsString]) -> Option<Verb> {
    let read = RESTORE.read(rest);
    let only_staged = read.has(&["S", "staged"]) && !read.names(&["W", "worktree"]);
    if only_staged && !read.is_unclear {
        return None;
    }
    // With the index, it is HEAD that counts.
    let head = (read.has(&["S", "staged"]) || read.is_unclear).then(|| "HEAD".into());
    Some(Verb::Restore {
        source: read.value(&["s", "source"]).map(Into::into).or(head),
        is_merged: read.names(&["m", "merge", "conflict"]),
        paths: read.paths(),
    })
}

pub(super) fn read_tree(rest: &[OsString]) -> Option<Verb> {
    let read = READ_TREE.read(rest);
    let touches_files = read.has(&["u"]) || read.is_unclear;
    if !touches_files || read.has(&["n", "dry-run"]) {
        return None;
    }
    // Under a prefix, nobody knows better.
    let is_elsewhere = read.names(&["prefix"]);
    let is_reset = read.names(&["reset"]) || read.is_unclear;
    Some(if is_elsewhere { Verb::Everything } else { Verb::ReadTree { trees: read.words, is_reset } })
}

/// Without `-f` it only makes what is not there.
pub(super) fn checkout_index(rest: &[OsString]) -> Option<Verb> {
    let read = CHECKOUT_INDEX.read(rest);
    let overwrites = read.has(&["f", "force"]) || read.is_unclear;
    let is_elsewhere = read.has(&["temp"]);
    let is_all = read.names(&["a", "all", "stdin", "prefix"]);
    let files = if is_all { Vec::new() } else { read.paths() };
    (overwrites && !is_elsewhere).then_some(Verb::CheckoutIndex { files })
}

/// Whether this verb goes on into submodules; nothing if that depends on what is set.
pub(super) fn recurses(verb: &str, rest: &[OsString]) -> Option<bool> {
    let known = match verb {
        "reset" => RESET,
        "checkout" => CHECKOUT,
        "switch" => SWITCH,
        "restore" => RESTORE,
        "read-tree" => READ_TREE,
        _ => return Some(false),
    };
    const SAID: [&str; 2] = ["recurse-submodules", "no-recurse-submodules"];
    let read = known.read(rest);
    let (name, value) = read.options.iter().rfind(|(name, _)| SAID.contains(&name.as_str()))?;
    let says_no = |value: &OsString| ["no", "false", "off", "0"].iter().any(|no| value == no);
    Some(name == SAID[0] && !value.as_ref().is_some_and(says_no))
}
