//! Verbs that bring the changes of other commits into the working tree.

use std::ffi::OsString;

use super::GitOperation;
use super::options::{OptionSpec, ParsedOptions};

const MERGE: OptionSpec = OptionSpec {
    letters: "nes:X:m:F:vqS?",
    names: "stat summary compact-summary log? squash commit edit cleanup= ff ff-only rerere-autoupdate \
            verify-signatures strategy= strategy-option= message= file= into-name= verbose quiet abort quit continue \
            allow-unrelated-histories progress gpg-sign? autostash overwrite-ignore signoff no-verify",
};
const PICK: OptionSpec = OptionSpec {
    letters: "nesm:X:S?x",
    names: "quit continue abort skip cleanup= no-commit edit signoff mainline= rerere-autoupdate strategy= \
            strategy-option= gpg-sign? ff allow-empty allow-empty-message keep-redundant-commits empty= reference",
};
const REBASE: OptionSpec = OptionSpec {
    letters: "qvnC:fmiS?x:r?s:X:k",
    names: "onto= keep-base no-verify quiet verbose no-stat signoff committer-date-is-author-date reset-author-date \
            ignore-date ignore-whitespace whitespace= force-rebase no-ff continue skip abort quit edit-todo \
            show-current-patch apply merge interactive rerere-autoupdate empty= keep-empty autosquash update-refs \
            gpg-sign? autostash exec= allow-empty-message rebase-merges? fork-point strategy= strategy-option= root \
            reschedule-failed-exec reapply-cherry-picks trailer=",
};
/// How something that was begun is ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct SequencerAction {
    pub continues: bool,
    pub skips: bool,
    pub aborts: bool,
}

pub(super) fn parse_merge(rest: &[OsString]) -> Option<GitOperation> {
    let read = MERGE.parse(rest);
    if read.is_present(&["abort"]) {
        return Some(GitOperation::MergeAbort);
    }
    if read.is_present(&["quit", "continue"]) && !read.is_unclear {
        return None;
    }
    if changes_other_paths(&read) {
        return Some(GitOperation::Everything);
    }
    let autostash = read.is_present(&["autostash", "no-autostash"]).then(|| read.is_enabled(&["autostash"]));
    let with = read.words.into_iter().chain(read.after.into_iter().flatten()).collect();
    Some(GitOperation::Merge { with, autostash: if read.is_unclear { Some(true) } else { autostash } })
}

pub(super) fn parse_cherry_pick(rest: &[OsString], is_backwards: bool) -> Option<GitOperation> {
    let read = PICK.parse(rest);
    let how = SequencerAction {
        continues: read.is_present(&["continue"]),
        skips: read.is_present(&["skip"]),
        aborts: read.is_present(&["abort"]),
    };
    if how != SequencerAction::default() {
        return Some(GitOperation::ResumeSequence(how));
    }
    if read.is_present(&["quit"]) && !read.is_unclear {
        return None;
    }
    // An option that chooses commits (`--all`, `-3`) is not read here.
    if changes_other_paths(&read) || read.is_unclear {
        return Some(GitOperation::Everything);
    }
    Some(GitOperation::Pick { commits: read.words, is_backwards })
}

pub(super) fn parse_rebase(rest: &[OsString]) -> Option<GitOperation> {
    let read = REBASE.parse(rest);
    if read.is_present(&["continue", "abort", "skip"]) {
        return Some(GitOperation::ResumeRebaseOrAm);
    }
    if read.is_present(&["quit", "edit-todo", "show-current-patch"]) && !read.is_unclear {
        return None;
    }
    if changes_other_paths(&read) || read.is_unclear || read.is_present(&["root"]) {
        return Some(GitOperation::Everything);
    }
    let onto = read.value(&["onto"]).map(Into::into);
    let mut words = read.words.into_iter().chain(read.after.into_iter().flatten());
    Some(GitOperation::Rebase { onto, upstream: words.next(), branch: words.next() })
}

/// What options that are set for a branch add to each merge: whether something is put away for it, and whether it may go anywhere.
pub(in super::super) fn parse_merge_options(options: &[OsString]) -> (Option<bool>, bool) {
    let read = MERGE.parse(options);
    let autostash = read.is_present(&["autostash", "no-autostash"]).then(|| read.is_enabled(&["autostash"]));
    (autostash, changes_other_paths(&read) || read.is_unclear)
}

/// A merge into a folder, or by a strategy of which nothing is known.
fn changes_other_paths(read: &ParsedOptions) -> bool {
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
