//! What stands before the verb: where git runs, and how it reads paths.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What the options before the verb say.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(in super::super) struct GlobalOptions {
    /// Where git goes first: every `-C`, one after the other.
    pub folder: PathBuf,
    /// `--git-dir`.
    pub git_dir: Option<OsString>,
    /// `--work-tree`.
    pub work_tree: Option<OsString>,
    /// Options that say how paths are read.
    pub pathspecs: Vec<OsString>,
    /// `--bare`: there is no working tree, unless it is named.
    pub is_bare: bool,
    /// Settings that this command line makes, as they are written: `name=value`.
    pub settings: Vec<OsString>,
    /// The names of settings, in small letters, whose values stand in variables that nobody knows.
    pub unknown_settings: Vec<String>,
}

/// Options whose value is the next word. The others of that sort are read below.
const OPTIONS_WITH_VALUE: [&str; 3] = ["--namespace", "--attr-source", "--shallow-file"];
const PATHSPECS: [&str; 5] = [
    "--literal-pathspecs",
    "--no-literal-pathspecs",
    "--glob-pathspecs",
    "--noglob-pathspecs",
    "--icase-pathspecs",
];
/// After these, git says something and ends.
const INFORMATIONAL: [&str; 9] = [
    "--help",
    "-h",
    "--version",
    "-v",
    "--html-path",
    "--man-path",
    "--info-path",
    "--exec-path",
    "--list-cmds",
];

/// The global options, the verb and its arguments; nothing if there is no verb.
pub(super) fn split_global_options(arguments: &[OsString]) -> Option<(GlobalOptions, String, &[OsString])> {
    let (program, mut rest) = arguments.split_first()?;
    let called = Path::new(program).file_name().unwrap_or_default().as_bytes();
    // `git-stash` is `git stash`: what follows belongs to the verb.
    if let Some(verb) = called.strip_prefix(b"git-") {
        return Some((GlobalOptions::default(), std::str::from_utf8(verb).ok()?.to_owned(), rest));
    }
    let mut global = GlobalOptions::default();
    loop {
        let (option, behind) = rest.split_first()?;
        rest = behind;
        let bytes = option.as_bytes();
        if !bytes.starts_with(b"-") {
            return Some((global, option.to_str()?.to_owned(), rest));
        }
        let (name, attached) = match bytes.iter().position(|byte| *byte == b'=') {
            Some(at) => (&bytes[..at], Some(OsStr::from_bytes(&bytes[at + 1..]))),
            None => (bytes, None),
        };
        let name = std::str::from_utf8(name).unwrap_or_default();
        if INFORMATIONAL.contains(&name) && attached.is_none() || name == "--list-cmds" {
            return None;
        }
        let takes_value = matches!(name, "-C" | "-c" | "--git-dir" | "--work-tree" | "--config-env")
            || OPTIONS_WITH_VALUE.contains(&name);
        let value = match attached {
            Some(value) => value,
            None if takes_value => {
                let (value, behind) = rest.split_first()?;
                rest = behind;
                value
            }
            None => OsStr::new(""),
        };
        match name {
            // An empty one changes nothing.
            "-C" if !value.is_empty() => global.folder.push(value),
            "-c" => global.settings.push(value.to_owned()),
            "--config-env" => global.unknown_settings.push(setting(value)),
            "--git-dir" => global.git_dir = Some(value.to_owned()),
            "--work-tree" => global.work_tree = Some(value.to_owned()),
            "--bare" => global.is_bare = true,
            name if PATHSPECS.contains(&name) => global.pathspecs.push(option.clone()),
            // The others change nothing here, and one that is not known stands alone, as most do.
            _ => {}
        }
    }
}

/// The name in `name=VARIABLE`.
fn setting(text: &OsStr) -> String {
    let name = text.as_bytes().split(|byte| *byte == b'=').next().unwrap_or_default();
    String::from_utf8_lossy(name).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn global_options_before_the_subcommand_are_parsed() {
        let line = words(
            "/usr/bin/git -C a --no-pager -p -C b -c Core.X=y --config-env=a.b=HOME --namespace n --git-dir=g \
             --work-tree w --exec-path=/x --icase-pathspecs --bare stash -C c",
        );
        let (global, verb, rest) = split_global_options(&line).unwrap();
        assert_eq!((verb.as_str(), rest), ("stash", &words("-C c")[..]));
        assert_eq!(global.folder, Path::new("a/b"));
        assert_eq!((global.git_dir, global.work_tree), (Some("g".into()), Some("w".into())));
        assert_eq!((global.pathspecs, global.is_bare), (words("--icase-pathspecs"), true));
        assert_eq!((global.settings, global.unknown_settings), (words("Core.X=y"), vec!["a.b".to_owned()]));
        assert_eq!(split_global_options(&words("git -C a -C /b stash")).unwrap().0.folder, Path::new("/b"));
        assert_eq!(split_global_options(&words("anything --what stash")).unwrap().1, "stash");
        assert_eq!(split_global_options(&words("/lib/git-core/git-stash -C c")).unwrap().1, "stash");
    }

    #[test]
    fn a_command_line_without_a_subcommand_is_ignored() {
        for line in ["git", "git --version", "git --help stash", "git -C", "git --exec-path stash", ""] {
            assert!(split_global_options(&words(line)).is_none(), "{line}");
        }
    }
}
