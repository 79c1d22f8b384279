//! Which session wrote each line, and which lines an edit kept.

use imara_diff::{Algorithm, Diff, InternedInput};
use serde::{Deserialize, Serialize};

use super::{Author, BlamedLine, Who};

/// Files up to here are looked at line by line. Above, and where it is no text, a file has one author.
const MOST_BYTES: usize = 1 << 20;

/// How far git looks for a NUL before it calls something text.
const LOOKED_AT: usize = 8_000;

/// Texts with at most this many pairs of lines are compared exactly.
const MAX_PAIRS_COMPARED: usize = 1 << 20;

/// Whose each line of a file is, as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribution {
    /// Of the whole content: the same content is no edit.
    digest: String,
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    /// Each line with its author; nobody is "as in HEAD".
    Lines(Vec<(Line, Option<Author>)>),
    /// One author for all of it.
    Whole(Option<Author>),
}

impl Attribution {
    /// A file that nobody was seen to change: as it is in HEAD, or not there (empty).
    pub fn unchanged(content: &[u8]) -> Self {
        let lines = || digests(content).into_iter().map(|line| (line, None)).collect();
        let known = if is_text(content) { Content::Lines(lines()) } else { Content::Whole(None) };
        Self { digest: digest(content), content: known }
    }

    /// After `author` changed the file to `content`.
    pub fn after(&self, content: &[u8], author: &Author) -> Self {
        let digest = digest(content);
        if digest == self.digest {
            return self.clone();
        }
        if !is_text(content) {
            return Self { digest, content: Content::Whole(Some(author.clone())) };
        }
        let lines = digests(content);
        let (old, authors): (Vec<_>, Vec<_>) = self.lines().iter().cloned().unzip();
        let kept = stayed(&old, &lines).into_iter().map(|place| match place {
            Some(place) => authors[place].clone(),
            None => Some(author.clone()),
        });
        let kept = kept.collect::<Vec<_>>();
        Self { digest, content: Content::Lines(lines.into_iter().zip(kept).collect()) }
    }

    /// Whose each line of the file is `now`, with HEAD as it is now (nothing if it does not have the file).
    ///
    /// What is as in HEAD is committed, whoever wrote it. A file that is no text or larger than 1 MiB is one line without
    /// text, number 0.
    pub fn report(&self, now: &[u8], head: Option<&[u8]>) -> Vec<BlamedLine> {
        if !is_text(now) {
            let author = match &self.content {
                _ if head == Some(now) => Who::Committed,
                Content::Whole(Some(author)) if self.digest == digest(now) => Who::Session(author.clone()),
                _ => Who::Unknown,
            };
            return vec![BlamedLine { number: 0, text: String::new(), author }];
        }
        let lines = digests(now);
        let committed = stayed(&head.filter(|head| is_text(head)).map(digests).unwrap_or_default(), &lines);
        let (old, authors): (Vec<_>, Vec<_>) = self.lines().iter().cloned().unzip();
        let known = stayed(&old, &lines);
        let blamed = split(now).zip(committed).zip(known).enumerate();
        blamed
            .map(|(index, ((text, committed), known))| {
                let author = match (committed, known.and_then(|place| authors[place].clone())) {
                    (Some(_), _) => Who::Committed,
                    (None, Some(author)) => Who::Session(author),
                    (None, None) => Who::Unknown,
                };
                BlamedLine { number: index + 1, text: String::from_utf8_lossy(text).into_owned(), author }
            })
            .collect()
    }

    fn lines(&self) -> &[(Line, Option<Author>)] {
        match &self.content {
            Content::Lines(lines) => lines,
            Content::Whole(_) => &[],
        }
    }
}

fn is_text(content: &[u8]) -> bool {
    content.len() <= MOST_BYTES && !content[..content.len().min(LOOKED_AT)].contains(&0)
}

fn digest(content: &[u8]) -> String {
    blake3::hash(content).to_hex().to_string()
}

/// How it is stored: each author once, lines of one author as one run, digests as one word.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Stored {
    digest: String,
    authors: Vec<Author>,
    /// How many lines in a row, and whose.
    runs: Vec<(usize, Option<usize>)>,
    /// Sixteen digits for each line; nothing if the file has one author.
    lines: Option<String>,
}

impl From<&Attribution> for Stored {
    fn from(attribution: &Attribution) -> Self {
        let mut stored =
            Stored { digest: attribution.digest.clone(), authors: Vec::new(), runs: Vec::new(), lines: None };
        match &attribution.content {
            Content::Whole(author) => stored.push(author.as_ref()),
            Content::Lines(lines) => {
                stored.lines = Some(lines.iter().map(|(line, _)| format!("{line:016x}")).collect());
                lines.iter().for_each(|(_, author)| stored.push(author.as_ref()));
            }
        }
        stored
    }
}

impl Stored {
    fn push(&mut self, author: Option<&Author>) {
        let index = author.map(|author| {
            self.authors.iter().position(|known| known == author).unwrap_or_else(|| {
                self.authors.push(author.clone());
                self.authors.len() - 1
            })
        });
        match self.runs.last_mut() {
            Some((count, last)) if *last == index => *count += 1,
            _ => self.runs.push((1, index)),
        }
    }

    /// What was stored, if it fits together.
    pub(super) fn restored(self) -> Option<Attribution> {
        let mut authors = Vec::new();
        for (count, index) in self.runs {
            let author = match index {
                Some(index) => Some(self.authors.get(index)?.clone()),
                None => None,
            };
            // No file that is looked at has more lines than bytes.
            if count > MOST_BYTES || authors.len() > MOST_BYTES {
                return None;
            }
            authors.extend(std::iter::repeat_n(author, count));
        }
        let content = match self.lines {
            None => Content::Whole(authors.pop()?),
            Some(lines) => {
                let lines = lines.as_bytes().chunks(16).map(|word| {
                    let word = std::str::from_utf8(word).ok().filter(|word| word.len() == 16)?;
                    Line::from_str_radix(word, 16).ok()
                });
                let lines = lines.collect::<Option<Vec<_>>>().filter(|lines| lines.len() == authors.len())?;
                Content::Lines(lines.into_iter().zip(authors).collect())
            }
        };
        Some(Attribution { digest: self.digest, content })
    }
}

/// A short digest of a line without its end.
type Line = u64;

/// The lines of a text. A line end behind the last line makes no further line.
fn split(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = content.split_inclusive(|byte| *byte == b'\n');
    lines.map(|line| line.strip_suffix(b"\n").unwrap_or(line))
}

/// The digests of the lines of a text.
fn digests(content: &[u8]) -> Vec<Line> {
    split(content).map(line_digest).collect()
}

fn line_digest(line: &[u8]) -> Line {
    let hash = blake3::hash(line);
    hash.as_bytes().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// For each new line, the old line that it is, if it stayed. Both are in order, so no line is moved.
///
/// The most lines stay where the two texts are small enough to find that out. Larger texts are compared by Myers'
/// algorithm with the limits that git uses, so that no file takes more than a moment.
fn stayed(old: &[Line], new: &[Line]) -> Vec<Option<usize>> {
    let mut input = InternedInput::default();
    input.update_before(old.iter().copied());
    input.update_after(new.iter().copied());
    let is_small = old.len().saturating_mul(new.len()) <= MAX_PAIRS_COMPARED;
    let algorithm = if is_small { Algorithm::MyersMinimal } else { Algorithm::Myers };
    let diff = Diff::compute(algorithm, &input);
    // Line numbers fit into 32 bits: a text has at most 1 MiB.
    let mut kept = (0_u32..).zip(0..old.len()).filter(|(number, _)| !diff.is_removed(*number));
    let lines = (0_u32..).zip(new);
    lines
        .map(|(number, _)| if diff.is_added(number) { None } else { kept.next().map(|(_, place)| place) })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Everything that a caller relies on.
    fn sound(old: &[Line], new: &[Line]) -> usize {
        let found = stayed(old, new);
        let places: Vec<_> = found.iter().flatten().collect();
        assert!(places.is_sorted_by(|one, other| one < other), "no line is moved or used twice");
        for (at, place) in found.iter().enumerate() {
            assert!(place.is_none_or(|place| old[place] == new[at]));
        }
        places.len()
    }

    /// How many can stay at most, the slow way.
    fn most(old: &[Line], new: &[Line]) -> usize {
        match (old.split_first(), new.split_first()) {
            (Some((a, old_rest)), Some((b, new_rest))) => {
                if a == b {
                    1 + most(old_rest, new_rest)
                } else {
                    most(old_rest, new).max(most(old, new_rest))
                }
            }
            _ => 0,
        }
    }

    proptest! {
        #[test]
        fn matched_lines_are_a_longest_common_subsequence(old in prop::collection::vec(0..4_u64, 0..9), new in prop::collection::vec(0..4_u64, 0..9)) {
            prop_assert_eq!(sound(&old, &new), most(&old, &new));
        }
    }

    #[test]
    fn large_texts_are_matched_quickly() {
        let old: Vec<_> = (0..60_000).collect();
        let mut new = old.clone();
        for at in (0..60_000).step_by(1_000) {
            new[at] = 1_000_000 + u64::try_from(at).unwrap();
        }
        new.splice(30_500..30_500, 2_000_000..2_003_000);
        assert_eq!(sound(&old, &new), 60_000 - 60);
        let other: Vec<_> = (1_000_000..1_500_000).collect();
        assert_eq!(sound(&other, &old), 0);
        // Nothing that stands once: written anew, and quickly so.
        let (ones, twos) = (vec![1; 200_000], [1, 2].repeat(100_000));
        sound(&ones, &twos);
        let backwards: Vec<_> = old.iter().rev().copied().collect();
        assert_eq!(sound(&old, &backwards), 1);
    }

    #[test]
    fn text_is_split_at_line_feeds() {
        let lines = |text: &str| split(text.as_bytes()).map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(lines(""), Vec::<Vec<u8>>::new());
        assert_eq!(lines("a"), [b"a".to_vec()]);
        assert_eq!(lines("a\n\nb\r\n"), [b"a".to_vec(), vec![], b"b\r".to_vec()]);
        assert_eq!(digests(b"a\nb"), digests(b"a\nb\n"));
        assert_ne!(digests(b"a\r\n"), digests(b"a\n"));
    }
}
