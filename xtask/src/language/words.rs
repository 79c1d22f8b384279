//! Recognises private words, in names and in prose.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde::{Deserialize, Deserializer, de::Error};

use super::FILE;
use super::definitions::words_of;
use super::lexer::{CodeAndProse, FileLanguage};
use crate::process::TaskError;
use crate::workspace::Workspace;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WordLists {
    names: BTreeSet<String>,
    prose: Vec<String>,
    nouns: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    kind: WordKind,
    #[serde(deserialize_with = "regex")]
    pattern: Regex,
    #[serde(default = "every_path", deserialize_with = "regex")]
    path: Regex,
    reason: String,
    #[serde(skip)]
    is_used: bool,
}

fn regex<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Regex, D::Error> {
    Regex::new(&String::deserialize(deserializer)?).map_err(Error::custom)
}

fn every_path() -> Regex {
    Regex::new("").expect("a pattern")
}

/// Where a word is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WordKind {
    Identifiers,
    Files,
    Prose,
}

impl WordKind {
    pub const ALL: [Self; 3] = [Self::Identifiers, Self::Files, Self::Prose];

    pub fn name(self) -> &'static str {
        match self {
            Self::Identifiers => "identifiers",
            Self::Files => "files",
            Self::Prose => "prose",
        }
    }
}

/// A private word in the repository.
#[derive(Debug, PartialEq, Eq)]
pub struct Occurrence {
    pub kind: WordKind,
    pub path: PathBuf,
    pub line: usize,
    pub word: String,
    /// The identifier with the word; empty in prose and for files.
    pub identifier: String,
}

impl fmt::Display for Occurrence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path.display(), self.line, self.word)?;
        if self.identifier.is_empty() { Ok(()) } else { write!(formatter, " in `{}`", self.identifier) }
    }
}

/// Recognises private words.
pub struct Checker {
    words: WordLists,
    phrases: Regex,
    exceptions: Vec<Exception>,
}

impl Checker {
    pub fn new(words: WordLists, exceptions: Vec<Exception>) -> Self {
        let phrases = words.prose.iter().map(|phrase| regex::escape(phrase).replace(' ', r"\s+"));
        let phrases = phrases.collect::<Vec<_>>().join("|");
        // ASCII boundaries: the others are slow in text that is not ASCII.
        let phrases = Regex::new(&format!(r"(?i)(?-u:\b)(?:{phrases})(?-u:\b)")).expect("escaped phrases");
        Self { words, phrases, exceptions }
    }

    /// Every private word in the repository that no exception permits.
    pub fn occurrences(&mut self, workspace: &Workspace) -> Result<Vec<Occurrence>, TaskError> {
        let (mut occurrences, mut folders) = (Vec::new(), BTreeSet::new());
        for path in workspace.git_files()? {
            self.check_file_name(&path, &mut occurrences);
            folders.extend(path.ancestors().skip(1).map(Path::to_owned));
            if let Some(language) = FileLanguage::of(&path)
                && path != Path::new(FILE)
            {
                let text = workspace.shell.read_file(&path)?;
                self.check_text(&path, language, &text, &mut occurrences);
            }
        }
        folders.iter().for_each(|folder| self.check_file_name(folder, &mut occurrences));
        Ok(occurrences)
    }

    fn check_file_name(&mut self, path: &Path, occurrences: &mut Vec<Occurrence>) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let mut found = self.private_words(&name);
        // A hyphenated name is a sentence: a decision record, a planted bug.
        found.extend(words_of(&name).pop().filter(|word| {
            let is_participle = word.ends_with("ing") || word.ends_with("ed");
            is_participle && !name.contains('-') && !self.words.nouns.contains(word)
        }));
        let text = path.to_string_lossy();
        let start = text.len() - path.file_name().unwrap_or_default().len();
        let place = start..start + name.len();
        for word in found {
            if !is_permitted(&mut self.exceptions, WordKind::Files, path, &text, &place) {
                let (path, identifier) = (path.to_owned(), String::new());
                occurrences.push(Occurrence { kind: WordKind::Files, path, line: 1, word, identifier });
            }
        }
    }

    fn check_text(
        &mut self,
        path: &Path,
        language: FileLanguage,
        text: &str,
        occurrences: &mut Vec<Occurrence>,
    ) {
        let parts = CodeAndProse::new(language, text);
        let identifiers = parts.names().into_iter().flat_map(|(start, identifier)| {
            let place = start..start + identifier.len();
            let words = self.private_words(identifier).into_iter();
            words.map(move |word| (WordKind::Identifiers, place.clone(), word, identifier.to_owned()))
        });
        let phrases = self.phrases.find_iter(&parts.prose).map(|phrase| {
            let words = phrase.as_str().split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
            (WordKind::Prose, phrase.range(), words, String::new())
        });
        for (kind, place, word, identifier) in identifiers.chain(phrases).collect::<Vec<_>>() {
            let start = text[..place.start].rfind('\n').map_or(0, |end| end + 1);
            let end = text[place.end..].find('\n').map_or(text.len(), |length| place.end + length);
            let in_lines = place.start - start..place.end - start;
            if !is_permitted(&mut self.exceptions, kind, path, &text[start..end], &in_lines) {
                let line = 1 + text[..place.start].matches('\n').count();
                occurrences.push(Occurrence { kind, path: path.to_owned(), line, word, identifier });
            }
        }
    }

    /// A message per exception that permitted nothing.
    pub fn unused_exceptions(&self) -> Vec<String> {
        let unused = self.exceptions.iter().filter(|exception| !exception.is_used);
        unused.map(|exception| format!("`{}`: {}", exception.pattern, exception.reason)).collect()
    }

    fn private_words(&self, name: &str) -> BTreeSet<String> {
        words_of(name).into_iter().filter(|word| self.words.names.contains(word)).collect()
    }
}

/// Whether an exception matches at `place` in `text`: a path, or the lines of an identifier or a phrase.
fn is_permitted(
    exceptions: &mut [Exception],
    kind: WordKind,
    path: &Path,
    text: &str,
    place: &Range<usize>,
) -> bool {
    let mut is_permitted = false;
    for exception in exceptions.iter_mut().filter(|exception| exception.kind == kind) {
        let mut matches = exception.pattern.find_iter(text);
        let covers = matches.any(|found| found.start() <= place.start && place.end <= found.end());
        if covers && exception.path.is_match(&path.to_string_lossy()) {
            exception.is_used = true;
            is_permitted = true;
        }
    }
    is_permitted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checker(exceptions: &str) -> Checker {
        #[derive(Deserialize)]
        struct Exceptions {
            #[serde(default)]
            exceptions: Vec<Exception>,
        }
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<BTreeSet<_>>();
        let lists = WordLists {
            names: words(&["blob", "gizmo"]),
            prose: vec!["gizmos".to_owned(), "old one".to_owned()],
            nouns: words(&["routing"]),
        };
        Checker::new(lists, toml::from_str::<Exceptions>(exceptions).expect("exceptions").exceptions)
    }

    fn found(checker: &mut Checker, path: &str, text: &str) -> Vec<String> {
        let (path, mut occurrences) = (Path::new(path), Vec::new());
        checker.check_file_name(path, &mut occurrences);
        checker.check_text(path, FileLanguage::of(path).expect("a language"), text, &mut occurrences);
        occurrences.iter().map(Occurrence::to_string).collect()
    }

    #[test]
    fn private_words_are_found_where_names_are_defined_and_in_prose() {
        let text = "fn blob_of() {\n    blob();\n}\n// An old\n// ONE of the gizmos.\nstruct Blobs;\n";
        let expected = ["a.rs:1: blob in `blob_of`", "a.rs:4: old one", "a.rs:5: gizmos"];
        assert_eq!(found(&mut checker(""), "a.rs", text), expected);
    }

    #[test]
    fn participles_and_private_words_in_file_names_are_found() {
        let found = |path: &str| found(&mut checker(""), path, "");
        assert_eq!(found("crates/a/gizmo_list.rs"), ["crates/a/gizmo_list.rs:1: gizmo"]);
        assert_eq!(found("asking.rs"), ["asking.rs:1: asking"]);
        assert_eq!(found("asked.py"), ["asked.py:1: asked"]);
        assert_eq!(found("docs/adr/01-a-blob-is-asked.md"), ["docs/adr/01-a-blob-is-asked.md:1: blob"]);
        for path in ["routing.rs", "asked_names.rs", "docs/adr/01-a-name-is-asked.md"] {
            assert_eq!(found(path), [""; 0], "{path}");
        }
    }

    #[test]
    fn exceptions_apply_to_their_kind_pattern_and_path() {
        let exception = |kind: &str, rest: &str| {
            checker(&format!("[[exceptions]]\nkind = '{kind}'\nreason = 'test'\n{rest}"))
        };
        let text = "let blob_id = 1; // --gizmos\n// gizmos\n";
        let all = ["a.rs:1: blob in `blob_id`", "a.rs:1: gizmos", "a.rs:2: gizmos"];
        assert_eq!(found(&mut exception("identifiers", "pattern = 'let blob_id'"), "a.rs", text), all[1..]);
        assert_eq!(found(&mut exception("prose", "pattern = '--gizmos'"), "a.rs", text), [all[0], all[2]]);
        let mut elsewhere = exception("prose", "pattern = '--gizmos'\npath = '^b'");
        assert_eq!(found(&mut elsewhere, "a.rs", text), all);
        assert_eq!(elsewhere.unused_exceptions(), ["`--gizmos`: test"]);
    }
}
