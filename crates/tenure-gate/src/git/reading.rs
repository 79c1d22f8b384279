//! What git may be asked: only what cannot write.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// Each of these only reads; what is not here is not run.
const READING: &[&str] = &[
    "cat-file",
    "check-ignore",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "ls-files",
    "ls-tree",
    "merge-base",
    "rev-list",
    "rev-parse",
    "status",
    "var",
];

/// These read with one option, which comes first, and with none but these after it. One with `=` at its end has a value, as has `-p`.
const READING_WITH: &[(&str, &str, &[&str])] =
    &[("config", "--get", &["--type=bool"]), ("apply", "--numstat", APPLY), ("apply", "--summary", APPLY)];
const APPLY: &[&str] = &["-z", "-R", "-p", "--directory=", "--unidiff-zero", "--recount", "--inaccurate-eof"];

/// Whether this can only read.
pub(super) fn only_reads(subcommand: &str, arguments: &[OsString]) -> bool {
    let mut options = arguments.iter().map(|argument| argument.as_bytes()).take_while(|word| *word != b"--");
    if READING.contains(&subcommand) {
        // `diff` and its like write into a file if asked to.
        return !options.any(|option| option.starts_with(b"--output"));
    }
    let first = options.next();
    let mut known = READING_WITH.iter().filter(|(known, ..)| *known == subcommand);
    let Some((.., others)) = known.find(|(_, known, _)| first == Some(known.as_bytes())) else {
        return false;
    };
    let is_known = |option: &[u8]| {
        others.iter().any(|known| {
            let takes_value = known.ends_with('=') || *known == "-p";
            option == known.as_bytes() || (takes_value && option.starts_with(known.as_bytes()))
        })
    };
    options.filter(|option| option.starts_with(b"-")).all(is_known)
        // With a value, `config` sets it.
        && (subcommand != "config" || arguments.len() <= 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(line: &str) -> bool {
        let words: Vec<_> = line.split(' ').map(OsString::from).collect();
        only_reads(words[0].to_str().unwrap(), &words[1..])
    }

    #[test]
    fn what_writes_with_some_options_is_asked_with_others_only() {
        assert!(reads("apply --numstat -z -R -p2 --directory=x --recount -- a.patch --apply"));
        assert!(reads("config --get --type=bool merge.autostash"));
        for line in [
            "apply a.patch",
            "apply -z --numstat a.patch",
            "apply --numstat --apply -- a",
            "apply --numstat --app -- a",
            "apply --numstat --build-fake-ancestor=x -- a",
            "apply --numstat --index -- a",
            "config merge.autostash yes",
            "config --get --unset merge.autostash",
            "config --get --type=bool merge.autostash yes",
            "diff --output=x",
        ] {
            assert!(!reads(line), "{line}");
        }
    }
}
