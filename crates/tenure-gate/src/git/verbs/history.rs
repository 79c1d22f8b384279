//! Verbs that bring the changes of other commits into the working tree.

use std::ffi::OsString;

use super::Verb;
use super::options::{Known, Read};

const MERGE: Known = Known {
    letters: "nes:X:m:F:vqS?",
    names: "stat summary compact-summary log? squash commit edit cleanup= ff ff-only rerere-autoupdate \
            verify-signatures strategy= strategy-option= message= file= into-name= verbose quiet abort quit continue \
            allow-unrelated-histories progress gpg-sign? autostash overwrite-ignore signoff no-verify",
};
const PICK: Known = Known {
    letters: "nesm:X:S?x",
    names: "quit continue abort skip cleanup= no-commit edit signoff mainline= rerere-autoupdate strategy= \
            strategy-option= gpg-sign? ff allow-empty allow-empty-message keep-redundant-commits empty= reference",
};
const REBASE: Known = Known {
    letters: "qvnC:fmiS?x:r?s:X:k",
    names: "onto= keep-base no-verify quiet verbose no-stat signoff committer-date-is-author-date reset-author-date \
            ignore-date ignore-whitespace whitespace= force-rebase no-ff continue skip abort quit edit-todo \
            show-current-patch apply merge interactive rerere-autoupdate empty= keep-empty autosquash update-refs \
            gpg-sign? autostash exec= allow-empty-message rebase-merges? fork-point strategy= strategy-option= root \
            reschedule-failed-exec reapply-cherry-picks trailer=",
};
/// How something that was begun is ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Resumed {
    pub goes_on: bool,
    pub passes_over: bool,
    pub gives_up: bool,
}

pub(super) fn merge(rest: &[OsString]) -> Option<Verb> {
    let read = MERGE.read(rest);
    if read.names(&["abort"]) {
        return Some(Verb::MergeGivenUp);
    }
    if read.names(&["quit", "continue"]) && !read.is_unclear {
        return None;
    }
    if goes_elsewhere(&read) {
        return Some(Verb::Everything);
    }
    let autostash = read.names(&["autostash", "no-autostash"]).then(|| read.has(&["autostash"]));
    let with = read.words.into_iter().chain(read.after.into_iter().flatten()).collect();
    Some(Verb::Merge { with, autostash: if read.is_unclear { Some(true) } else { autostash } })
}

pub(super) fn pick(rest: &[OsString], is_backwards: bool) -> Option<Verb> {
    let read = PICK.read(rest);
    let how = Resumed {
        goes_on: read.names(&["continue"]),
        passes_over: read.names(&["skip"]),
        gives_up: read.names(&["abort"]),
    };
    if how != Resumed::default() {
        return Some(Verb::Series(how));
    }
    if read.names(&["quit"]) && !read.is_unclear {
        return None;
    }
    // An option that chooses commits (`--all`, `-3`) is not read here.
    if goes_elsewhere(&read) || read.is_unclear {
        return Some(Verb::Everything);
    }
    Some(Verb::Pick { commits: read.words, is_backwards })
}

pub(super) fn rebase(rest: &[OsString]) -> Option<Verb> {
    let read = REBASE.read(rest);
    if read.names(&["continue", "abort", "skip"]) {
        return Some(Verb::Resume);
    }
    if read.names(&["quit", "edit-todo", "show-current-patch"]) && !read.is_unclear {
        return None;
    }
    if goes_elsewhere(&read) || read.is_unclear || read.names(&["root"]) {
        return Some(Verb::Everything);
    }
    let onto = read.value(&["onto"]).map(Into::into);
    let mut words = read.words.into_iter().chain(read.after.into_iter().flatten());
    Some(Verb::Rebase { onto, upstream: words.next(), branch: words.next() })
}

/// What options that are set for a branch add to each merge: whether something is put away for it, and whether it may go anywhere.
pub(in super::super) fn merge_options(options: &[OsString]) -> (Option<bool>, bool) {
    let read = MERGE.read(options);
    let autostash = read.names(&["autostash", "no-autostash"]).then(|| read.has(&["autostash"]));
    (autostash, goes_elsewhere(&read) || read.is_unclear)
}

/// A merge into a folder, or by a strategy of which nothing is known.
fn goes_elsewhere(read: &Read) -> bool {
    const PLAIN: [&str; 5] = ["ort", "recursive", "resolve", "octopus", "ours"];
    read.options.iter().any(|(name, value)| {
        // Where `-s` has no value, it means something else.
        let Some(value) = value else { return false };
        let value = value.to_str().unwrap_or_default();
        match name.as_str() {
            "s" | "strategy" => !PLAIN.contains(&value),
            "X" | "strategy-option" => value.starts_with("subtree"),
            _ => false,
        }
    })
}
