//! The text of a hook.

/// By this line a hook is known to be ours.
const OWN_MARKER: &str = "# Written by `tenure install git`; `tenure uninstall git` takes it out again.";

/// What the name of an earlier hook ends with.
pub const EARLIER_SUFFIX: &str = ".before-tenure";

/// A hook of git that we are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitHookKind {
    PreCommit,
    /// After a commit, also one that skipped its checks.
    PostCommit,
    /// After a branch moved, also by a commit without any porcelain.
    ReferenceTransaction,
}

impl GitHookKind {
    pub const ALL: [GitHookKind; 3] =
        [GitHookKind::PreCommit, GitHookKind::PostCommit, GitHookKind::ReferenceTransaction];

    /// Its name, which git gave it.
    pub const fn name(self) -> &'static str {
        match self {
            GitHookKind::PreCommit => "pre-commit",
            GitHookKind::PostCommit => "post-commit",
            GitHookKind::ReferenceTransaction => "reference-transaction",
        }
    }
}

/// Whether this is one of our scripts.
pub fn is_own_script(content: &[u8]) -> bool {
    content.split(|byte| *byte == b'\n').nth(1) == Some(OWN_MARKER.as_bytes())
}

/// The script that calls `earlier`, if there was a hook, and then the program (quoted already). If the program is gone,
/// git must go on as if nothing were here.
pub fn render_script(hook: GitHookKind, program: &str, earlier: Option<&[u8]>) -> String {
    let name = hook.name();
    let run = format!("\"$program\" hook git {name} \"$@\"");
    let there = format!("[ -x \"$0{EARLIER_SUFFIX}\" ]");
    let call = earlier.map(call);
    let body = match (hook, call) {
        (GitHookKind::PreCommit, Some(call)) => format!(
            "if {there}; then\n    {call} || exit $?\nfi\n\
             [ -x \"$program\" ] || exit 0\nexec {run}\n"
        ),
        (GitHookKind::PreCommit | GitHookKind::PostCommit, None) => {
            format!("[ -x \"$program\" ] || exit 0\nexec {run}\n")
        }
        (GitHookKind::PostCommit, Some(call)) => format!(
            "code=0\nif {there}; then\n    {call}\n    code=$?\nfi\n\
             [ -x \"$program\" ] || exit \"$code\"\n\
             [ \"$code\" = 0 ] && exec {run}\n{run}\nexit \"$code\"\n"
        ),
        (GitHookKind::ReferenceTransaction, None) => {
            format!("[ \"$1\" = committed ] || exit 0\n[ -x \"$program\" ] || exit 0\nexec {run}\n")
        }
        // What git says on standard input has to reach both, whole.
        (GitHookKind::ReferenceTransaction, Some(call)) => format!(
            "heard=$(cat; echo .)\nheard=${{heard%.}}\ncode=0\n\
             if {there}; then\n    printf %s \"$heard\" | {call}\n    code=$?\nfi\n\
             if [ \"$1\" = committed ] && [ -x \"$program\" ]; then\n    printf %s \"$heard\" | {run}\nfi\n\
             exit \"$code\"\n"
        ),
    };
    format!("#!/bin/sh\n{OWN_MARKER}\nprogram={program}\n{body}")
}

/// How an earlier hook is called. A script for a shell that looks at its own name (husky's do: it tells them which hook
/// they are) is read by that shell under the name that it had; everything else is just run.
fn call(earlier: &[u8]) -> String {
    let text = String::from_utf8_lossy(earlier);
    let looks_at_its_name = text.contains("$0") || text.contains("${0");
    match text.lines().next().and_then(shell).filter(|_| looks_at_its_name) {
        Some(shell) => format!("{shell} -c '. \"$0{EARLIER_SUFFIX}\"' \"$0\" \"$@\""),
        None => format!("\"$0{EARLIER_SUFFIX}\" \"$@\""),
    }
}

/// The shell of a script by its first line, if that is one whose ways we know.
fn shell(line: &str) -> Option<String> {
    let words: Vec<_> = line.strip_prefix("#!")?.split_whitespace().collect();
    let (interpreter, options) = match words.as_slice() {
        ["/usr/bin/env", shell] => (*shell, [].as_slice()),
        [shell, options @ ..] if shell.starts_with('/') && options.len() <= 1 => (*shell, options),
        _ => return None,
    };
    let is_known = matches!(interpreter.rsplit('/').next(), Some("sh" | "bash" | "dash"));
    let is_plain =
        |word: &&&str| word.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-".contains(letter));
    let are_options = options.iter().all(|option| option.starts_with('-'));
    (is_known && are_options && words.iter().all(|word| is_plain(&word))).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_scripts_are_recognized_by_their_second_line() {
        for hook in GitHookKind::ALL {
            for earlier in [None, Some(b"#!/bin/sh\n".as_slice())] {
                assert!(is_own_script(render_script(hook, "/x", earlier).as_bytes()));
            }
        }
        assert!(!is_own_script(b"") && !is_own_script(b"#!/bin/sh\n# something\n"));
    }

    #[test]
    fn only_shell_scripts_that_read_their_name_are_sourced() {
        let read_by =
            |text: &str| call(text.as_bytes()).split_once(" -c ").map(|(shell, _)| shell.to_owned());
        assert_eq!(read_by("#!/usr/bin/env sh\n. \"${0%/*}/h\"\n").as_deref(), Some("/usr/bin/env sh"));
        assert_eq!(read_by("#!/bin/bash -e\necho $0\n").as_deref(), Some("/bin/bash -e"));
        assert_eq!(read_by("#!/bin/sh\necho no name\n"), None);
        assert_eq!(read_by("#!/usr/bin/env python3\nprint('$0')\n"), None);
        assert_eq!(read_by("#!/usr/bin/env -S bash -e\n$0\n"), None);
        assert_eq!(read_by("#!/bin/sh; rm\n$0\n"), None);
        assert_eq!(read_by("\x7fELF$0"), None);
    }
}
