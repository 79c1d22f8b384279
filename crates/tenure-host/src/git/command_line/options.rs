//! Options as git reads them: bundled letters, values, negations, and long names that are cut short.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The options of one verb.
///
/// `letters`: `f` stands alone, `m:` takes a value, `S?` takes one only if it is written right behind. `names`: `force`,
/// `message=`, `track?` in the same sense.
pub(super) struct OptionSpec {
    pub letters: &'static str,
    pub names: &'static str,
}

/// What stands in a command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ParsedOptions {
    /// Options by letter or full name, with their values, in order. `no-NAME` is a negation.
    pub options: Vec<(String, Option<OsString>)>,
    /// Words before `--`.
    pub words: Vec<OsString>,
    /// Words after `--`, if it was there.
    pub after: Option<Vec<OsString>>,
    /// Something that is not known: it may have taken a word for its value, so no word can be trusted to be a path.
    pub is_unclear: bool,
}

impl ParsedOptions {
    /// Whether one of these was given and not taken back by its negation later.
    pub fn is_enabled(&self, names: &[&str]) -> bool {
        let mut enabled = false;
        for (name, _) in &self.options {
            enabled = match name.strip_prefix("no-") {
                Some(positive) if names.contains(&positive) => false,
                _ => enabled || names.contains(&name.as_str()),
            };
        }
        enabled
    }

    /// Whether one of these stands there at all.
    pub fn is_present(&self, names: &[&str]) -> bool {
        self.options.iter().any(|(name, _)| names.contains(&name.as_str()))
    }

    pub fn value(&self, names: &[&str]) -> Option<&OsStr> {
        let mut matching = self.options.iter().rev().filter(|(name, _)| names.contains(&name.as_str()));
        matching.find_map(|(_, value)| value.as_deref())
    }

    pub fn values(&self, names: &[&str]) -> Vec<OsString> {
        let matching = self.options.iter().filter(|(name, _)| names.contains(&name.as_str()));
        matching.filter_map(|(_, value)| value.clone()).collect()
    }

    /// All words as paths. None means the whole tree: also where nobody can tell which are meant.
    pub fn paths(&self) -> Vec<OsString> {
        self.paths_unless_ambiguous(self.words.iter().chain(self.after.iter().flatten()).cloned().collect())
    }

    /// These paths, or the whole tree where nobody can tell.
    pub fn paths_unless_ambiguous(&self, paths: Vec<OsString>) -> Vec<OsString> {
        if self.is_unclear || self.is_present(&["pathspec-from-file"]) { Vec::new() } else { paths }
    }
}

enum ValueMode {
    None,
    Attached,
    Required,
}

impl OptionSpec {
    pub fn parse(&self, arguments: &[OsString]) -> ParsedOptions {
        let mut read = ParsedOptions::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let bytes = argument.as_bytes();
            if bytes == b"--" {
                read.after = Some(rest.cloned().collect());
                break;
            } else if bytes == b"--end-of-options" {
                read.words.extend(rest.by_ref().take_while(|word| *word != "--").cloned());
                // Whatever followed a `--` here is wider without its limit.
                read.is_unclear = true;
                break;
            } else if let Some(long) = bytes.strip_prefix(b"--") {
                self.long(long, &mut rest, &mut read);
            } else if let Some(letters) = bytes.strip_prefix(b"-").filter(|letters| !letters.is_empty()) {
                self.short(letters, &mut rest, &mut read);
            } else {
                read.words.push(argument.clone());
            }
        }
        read
    }

    fn long<'a>(&self, text: &[u8], rest: &mut impl Iterator<Item = &'a OsString>, read: &mut ParsedOptions) {
        let (name, attached) = match text.iter().position(|byte| *byte == b'=') {
            Some(at) => (&text[..at], Some(OsString::from_vec(text[at + 1..].to_vec()))),
            None => (text, None),
        };
        let Some((name, value)) = std::str::from_utf8(name).ok().and_then(|name| self.find(name)) else {
            read.is_unclear = true;
            return;
        };
        let value = match value {
            ValueMode::Required if attached.is_none() => rest.next().cloned(),
            _ => attached,
        };
        read.options.push((name, value));
    }

    /// The one option that this is the name of, or the beginning of the name.
    fn find(&self, word: &str) -> Option<(String, ValueMode)> {
        let mut found = Vec::new();
        for option in self.names.split_whitespace() {
            let (name, value) = match option.as_bytes().last() {
                Some(b'=') => (&option[..option.len() - 1], ValueMode::Required),
                Some(b'?') => (&option[..option.len() - 1], ValueMode::Attached),
                _ => (option, ValueMode::None),
            };
            // What is taken back needs no value.
            let negated = match name.strip_prefix("no-") {
                Some(positive) => positive.to_owned(),
                None => format!("no-{name}"),
            };
            if word == name {
                return Some((word.to_owned(), value));
            } else if word == negated {
                return Some((negated, ValueMode::None));
            } else if name.starts_with(word) {
                found.push((name.to_owned(), value));
            } else if negated.starts_with(word) {
                found.push((negated, ValueMode::None));
            }
        }
        // Several: git refuses it.
        if found.len() == 1 { found.pop() } else { None }
    }

    fn short<'a>(
        &self,
        mut letters: &[u8],
        rest: &mut impl Iterator<Item = &'a OsString>,
        read: &mut ParsedOptions,
    ) {
        while let Some((letter, behind)) = letters.split_first() {
            let Some(at) = self.letters.bytes().position(|known| known == *letter) else {
                read.is_unclear = true;
                return;
            };
            let attached = || (!behind.is_empty()).then(|| OsStr::from_bytes(behind).to_owned());
            let name = char::from(*letter).to_string();
            match self.letters.as_bytes().get(at + 1) {
                Some(b':') => {
                    let value = attached().or_else(|| rest.next().cloned());
                    read.options.push((name, value));
                    return;
                }
                Some(b'?') => {
                    read.options.push((name, attached()));
                    return;
                }
                _ => read.options.push((name, None)),
            }
            letters = behind;
        }
    }
}

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

    const KNOWN: OptionSpec =
        OptionSpec { letters: "fdm:S?", names: "hard help-all= keep message= track? no-stat" };

    fn read(line: &str) -> ParsedOptions {
        KNOWN.parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn unambiguous_option_prefixes_are_expanded() {
        assert!(read("--har").is_enabled(&["hard"]));
        assert!(read("--ha").is_enabled(&["hard"]));
        assert!(read("--h").is_unclear, "two begin with h");
        assert!(!read("--hard --no-hard").is_enabled(&["hard"]));
        assert!(!read("--hard --no-ha").is_enabled(&["hard"]));
        assert!(read("--hard --no-hard").is_present(&["hard"]));
        assert!(read("--stat").is_present(&["stat"]) && read("--no-st").is_present(&["no-stat"]));
        assert!(read("--unknown").is_unclear && read("-z").is_unclear);
    }

    #[test]
    fn option_values_are_not_words_and_short_options_can_be_bundled() {
        let one = read("-fdm text word --mess more -Skey -S other -- -f");
        let value = |text: &str| Some(OsString::from(text));
        let expected = [
            ("f", None),
            ("d", None),
            ("m", value("text")),
            ("message", value("more")),
            ("S", value("key")),
            ("S", None),
        ];
        assert_eq!(one.options, expected.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(one.words, ["word", "other"]);
        assert_eq!(one.after, Some(vec!["-f".into()]));
        assert_eq!(one.value(&["m", "message"]), Some(OsStr::new("more")));
        assert_eq!(read("-mtext - --track --track=x").words, ["-"]);
    }

    #[test]
    fn unknown_options_select_the_whole_tree() {
        assert_eq!(read("-f a -- b").paths(), ["a", "b"]);
        assert_eq!(read("-f --new a -- b").paths(), [""; 0]);
        assert_eq!(read("--end-of-options -x").words, ["-x"]);
    }

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
