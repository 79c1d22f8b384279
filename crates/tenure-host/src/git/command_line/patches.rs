//! Verbs that apply patches: which files they change, stands in the patches.

use std::ffi::{OsStr, OsString};

use super::GitOperation;
use super::options::{OptionSpec, ParsedOptions};

const APPLY: OptionSpec = OptionSpec {
    letters: "Np:3zC:Rvq",
    names: "exclude= include= no-add stat numstat summary check index intent-to-add cached unsafe-paths apply 3way \
            ours theirs union build-fake-ancestor= whitespace= ignore-space-change ignore-whitespace reverse \
            unidiff-zero reject allow-overlap verbose quiet inaccurate-eof recount directory= allow-empty",
};
const AM: OptionSpec = OptionSpec {
    letters: "in3qsukmcC:p:rS?",
    names: "interactive no-verify 3way quiet signoff utf8 keep keep-non-patch message-id keep-cr scissors \
            quoted-cr= whitespace= ignore-space-change ignore-whitespace directory= exclude= include= \
            patch-format= reject resolvemsg= continue resolved skip abort quit show-current-patch? retry \
            allow-empty committer-date-is-author-date ignore-date rerere-autoupdate gpg-sign? empty=",
};

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(in super::super) struct PatchArguments {
    pub files: Vec<OsString>,
    /// How names and lines in them are read, as `git apply` takes it.
    pub options: Vec<OsString>,
    /// What does not fit is put beside the file.
    pub rejects: bool,
    /// Merges what does not fit; nothing if that depends on what is set.
    pub is_merged: Option<bool>,
}

/// What comes from standard input, nobody knows: then each file is asked for when it is changed.
pub(super) fn parse_apply(rest: &[OsString]) -> Option<GitOperation> {
    let read = APPLY.parse(rest);
    let only_reports = read.is_enabled(&["stat", "numstat", "summary", "check", "build-fake-ancestor"])
        && !read.is_enabled(&["apply"])
        && !read.is_unclear;
    let only_index = read.is_enabled(&["cached"]) && !read.is_unclear;
    let patches = PatchArguments::new(&read);
    (!only_reports && !only_index && !patches.files.is_empty()).then_some(GitOperation::Apply(patches))
}

pub(super) fn parse_am(rest: &[OsString]) -> Option<GitOperation> {
    let read = AM.parse(rest);
    if read.is_present(&["continue", "resolved", "r", "abort", "skip", "retry"]) {
        return Some(GitOperation::ResumeRebaseOrAm);
    }
    let only_tells = read.is_present(&["quit", "show-current-patch"]) && !read.is_unclear;
    (!only_tells).then(|| GitOperation::ApplyMails(PatchArguments::new(&read)))
}

impl PatchArguments {
    fn new(read: &ParsedOptions) -> Self {
        let files = read.words.iter().chain(read.after.iter().flatten()).filter(|file| *file != "-").cloned();
        let mut options = Vec::new();
        for (name, value) in &read.options {
            let (option, value) = match (name.as_str(), value) {
                ("p", Some(value)) => ("-p", Some(value)),
                ("directory", Some(value)) => ("--directory=", Some(value)),
                ("unidiff-zero", _) => ("--unidiff-zero", None),
                ("recount", _) => ("--recount", None),
                ("inaccurate-eof", _) => ("--inaccurate-eof", None),
                _ => continue,
            };
            let mut option = OsString::from(option);
            option.push(value.map_or(OsStr::new(""), OsString::as_os_str));
            options.push(option);
        }
        Self {
            files: files.collect(),
            options,
            rejects: read.is_present(&["reject"]) || read.is_unclear,
            is_merged: read.is_present(&["3", "3way", "no-3way"]).then(|| read.is_enabled(&["3", "3way"])),
        }
    }
}
