//! Options as git reads them: bundled letters, values, negations, and long names that are cut short.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

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
}
