//! Which session wrote each line, and which lines an edit kept.

use imara_diff::{Algorithm, Diff, InternedInput};
use serde::{Deserialize, Serialize};

use super::{AgentAuthor, BlamedLine, LineAuthor};

/// Files up to here are looked at line by line. Above, and where it is no text, a file has one author.
const MAX_LINE_BLAME_BYTES: usize = 1 << 20;

/// How far git looks for a NUL before it calls something text.
const NUL_SCAN_BYTES: usize = 8_000;

/// Texts with at most this many pairs of lines are compared exactly.
const MAX_PAIRS_COMPARED: usize = 1 << 20;

/// Whose each line of a file is, as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineAttribution {
    /// Of the whole content: the same content is no edit.
    digest: String,
    content: AttributedContent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum AttributedContent {
    /// Each line with its author; nobody is "as in HEAD".
    Lines(Vec<(LineDigest, Option<AgentAuthor>)>),
    /// One author for all of it.
    Whole(Option<AgentAuthor>),
}

impl LineAttribution {
    /// A file that nobody was seen to change: as it is in HEAD, or not there (empty).
    pub fn unchanged(content: &[u8]) -> Self {
        let lines = || line_digests(content).into_iter().map(|line| (line, None)).collect();
        let known =
            if is_text(content) { AttributedContent::Lines(lines()) } else { AttributedContent::Whole(None) };
        Self { digest: digest(content), content: known }
    }

    /// After `author` changed the file to `content`.
    pub fn after_edit(&self, content: &[u8], author: &AgentAuthor) -> Self {
        let digest = digest(content);
        if digest == self.digest {
            return self.clone();
        }
        if !is_text(content) {
            return Self { digest, content: AttributedContent::Whole(Some(author.clone())) };
        }
        let lines = line_digests(content);
        let (old, authors): (Vec<_>, Vec<_>) = self.lines().iter().cloned().unzip();
        let kept = match_lines(&old, &lines).into_iter().map(|place| match place {
            Some(place) => authors[place].clone(),
            None => Some(author.clone()),
        });
        let kept = kept.collect::<Vec<_>>();
        Self { digest, content: AttributedContent::Lines(lines.into_iter().zip(kept).collect()) }
    }

    /// Whose each line of the file is `now`, with HEAD as it is now (nothing if it does not have the file).
    ///
    /// What is as in HEAD is committed, whoever wrote it. A file that is no text or larger than 1 MiB is one line without
    /// text, number 0.
    pub fn blame_lines(&self, now: &[u8], head: Option<&[u8]>) -> Vec<BlamedLine> {
        if !is_text(now) {
            let author = match &self.content {
                _ if head == Some(now) => LineAuthor::Committed,
                AttributedContent::Whole(Some(author)) if self.digest == digest(now) => {
                    LineAuthor::Session(author.clone())
                }
                _ => LineAuthor::Unknown,
            };
            return vec![BlamedLine { number: 0, text: String::new(), author }];
        }
        let lines = line_digests(now);
        let committed =
            match_lines(&head.filter(|head| is_text(head)).map(line_digests).unwrap_or_default(), &lines);
        let (old, authors): (Vec<_>, Vec<_>) = self.lines().iter().cloned().unzip();
        let known = match_lines(&old, &lines);
        let blamed = split_lines(now).zip(committed).zip(known).enumerate();
        blamed
            .map(|(index, ((text, committed), known))| {
                let author = match (committed, known.and_then(|place| authors[place].clone())) {
                    (Some(_), _) => LineAuthor::Committed,
                    (None, Some(author)) => LineAuthor::Session(author),
                    (None, None) => LineAuthor::Unknown,
                };
                BlamedLine { number: index + 1, text: String::from_utf8_lossy(text).into_owned(), author }
            })
            .collect()
    }

    fn lines(&self) -> &[(LineDigest, Option<AgentAuthor>)] {
        match &self.content {
            AttributedContent::Lines(lines) => lines,
            AttributedContent::Whole(_) => &[],
        }
    }
}

fn is_text(content: &[u8]) -> bool {
    content.len() <= MAX_LINE_BLAME_BYTES && !content[..content.len().min(NUL_SCAN_BYTES)].contains(&0)
}

fn digest(content: &[u8]) -> String {
    blake3::hash(content).to_hex().to_string()
}

/// How it is stored: each author once, lines of one author as one run, digests as one word.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredAttribution {
    digest: String,
    authors: Vec<AgentAuthor>,
    /// How many lines in a row, and whose.
    runs: Vec<(usize, Option<usize>)>,
    /// Sixteen digits for each line; nothing if the file has one author.
    lines: Option<String>,
}

impl From<&LineAttribution> for StoredAttribution {
    fn from(attribution: &LineAttribution) -> Self {
        let mut stored = StoredAttribution {
            digest: attribution.digest.clone(),
            authors: Vec::new(),
            runs: Vec::new(),
            lines: None,
        };
        match &attribution.content {
            AttributedContent::Whole(author) => stored.push(author.as_ref()),
            AttributedContent::Lines(lines) => {
                stored.lines = Some(lines.iter().map(|(line, _)| format!("{line:016x}")).collect());
                lines.iter().for_each(|(_, author)| stored.push(author.as_ref()));
            }
        }
        stored
    }
}

impl StoredAttribution {
    fn push(&mut self, author: Option<&AgentAuthor>) {
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
    pub(super) fn into_attribution(self) -> Option<LineAttribution> {
        let mut authors = Vec::new();
        for (count, index) in self.runs {
            let author = match index {
                Some(index) => Some(self.authors.get(index)?.clone()),
                None => None,
            };
            // No file that is looked at has more lines than bytes.
            if count > MAX_LINE_BLAME_BYTES || authors.len() > MAX_LINE_BLAME_BYTES {
                return None;
            }
            authors.extend(std::iter::repeat_n(author, count));
        }
        let content = match self.lines {
            None => AttributedContent::Whole(authors.pop()?),
            Some(lines) => {
                let lines = lines.as_bytes().chunks(16).map(|word| {
                    let word = std::str::from_utf8(word).ok().filter(|word| word.len() == 16)?;
                    LineDigest::from_str_radix(word, 16).ok()
                });
                let lines = lines.collect::<Option<Vec<_>>>().filter(|lines| lines.len() == authors.len())?;
                AttributedContent::Lines(lines.into_iter().zip(authors).collect())
            }
        };
        Some(LineAttribution { digest: self.digest, content })
    }
}

/// A short digest of a line without its end.
type LineDigest = u64;

/// The lines of a text. A line end behind the last line makes no further line.
fn split_lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = content.split_inclusive(|byte| *byte == b'\n');
    lines.map(|line| line.strip_suffix(b"\n").unwrap_or(line))
}

/// The digests of the lines of a text.
fn line_digests(content: &[u8]) -> Vec<LineDigest> {
    split_lines(content).map(line_digest).collect()
}

fn line_digest(line: &[u8]) -> LineDigest {
    let hash = blake3::hash(line);
    hash.as_bytes().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// For each new line, the old line that it is, if it stayed. Both are in order, so no line is moved.
///
/// In small texts as many lines stay as can. Larger texts are compared as git compares them, with its limits, so that no
/// file takes more than a moment.
fn match_lines(old: &[LineDigest], new: &[LineDigest]) -> Vec<Option<usize>> {
    if old.len().saturating_mul(new.len()) <= MAX_PAIRS_COMPARED {
        return longest_common_subsequence(old, new);
    }
    let mut input = InternedInput::default();
    input.update_before(old.iter().copied());
    input.update_after(new.iter().copied());
    let diff = Diff::compute(Algorithm::Myers, &input);
    // Line numbers fit into 32 bits: a text has at most 1 MiB.
    let mut kept = (0_u32..).zip(0..old.len()).filter(|(number, _)| !diff.is_removed(*number));
    let lines = (0_u32..).zip(new);
    lines
        .map(|(number, _)| if diff.is_added(number) { None } else { kept.next().map(|(_, place)| place) })
        .collect()
}

/// The longest common subsequence. imara-diff leaves lines out of its comparison that stand in a text often, so that a line
/// that stayed could be attributed to the session that made the edit.
fn longest_common_subsequence(old: &[LineDigest], new: &[LineDigest]) -> Vec<Option<usize>> {
    let width = new.len() + 1;
    // The length of the longest one from here to the end.
    let mut longest = vec![0_u32; (old.len() + 1) * width];
    for row in (0..old.len()).rev() {
        for column in (0..new.len()).rev() {
            longest[row * width + column] = if old[row] == new[column] {
                longest[(row + 1) * width + column + 1] + 1
            } else {
                longest[(row + 1) * width + column].max(longest[row * width + column + 1])
            };
        }
    }
    let mut matches = vec![None; new.len()];
    let (mut row, mut column) = (0, 0);
    while row < old.len() && column < new.len() {
        if old[row] == new[column] {
            matches[column] = Some(row);
            (row, column) = (row + 1, column + 1);
        } else if longest[(row + 1) * width + column] >= longest[row * width + column + 1] {
            row += 1;
        } else {
            column += 1;
        }
    }
    matches
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Everything that a caller relies on.
    fn check_matches(old: &[LineDigest], new: &[LineDigest]) -> usize {
        let found = match_lines(old, new);
        let places: Vec<_> = found.iter().flatten().collect();
        assert!(places.is_sorted_by(|one, other| one < other), "no line is moved or used twice");
        for (at, place) in found.iter().enumerate() {
            assert!(place.is_none_or(|place| old[place] == new[at]));
        }
        places.len()
    }

    /// How many can stay at most, the slow way.
    fn longest_common_subsequence(old: &[LineDigest], new: &[LineDigest]) -> usize {
        match (old.split_first(), new.split_first()) {
            (Some((a, old_rest)), Some((b, new_rest))) => {
                if a == b {
                    1 + longest_common_subsequence(old_rest, new_rest)
                } else {
                    longest_common_subsequence(old_rest, new).max(longest_common_subsequence(old, new_rest))
                }
            }
            _ => 0,
        }
    }

    proptest! {
        #[test]
        fn matched_lines_are_a_longest_common_subsequence(old in prop::collection::vec(0..4_u64, 0..9), new in prop::collection::vec(0..4_u64, 0..9)) {
            prop_assert_eq!(check_matches(&old, &new), longest_common_subsequence(&old, &new));
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
        assert_eq!(check_matches(&old, &new), 60_000 - 60);
        let other: Vec<_> = (1_000_000..1_500_000).collect();
        assert_eq!(check_matches(&other, &old), 0);
        // Nothing that stands once: written anew, and quickly so.
        let (ones, twos) = (vec![1; 200_000], [1, 2].repeat(100_000));
        check_matches(&ones, &twos);
        let backwards: Vec<_> = old.iter().rev().copied().collect();
        assert_eq!(check_matches(&old, &backwards), 1);
    }

    #[test]
    fn text_is_split_at_line_feeds() {
        let lines = |text: &str| split_lines(text.as_bytes()).map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(lines(""), Vec::<Vec<u8>>::new());
        assert_eq!(lines("a"), [b"a".to_vec()]);
        assert_eq!(lines("a\n\nb\r\n"), [b"a".to_vec(), vec![], b"b\r".to_vec()]);
        assert_eq!(line_digests(b"a\nb"), line_digests(b"a\nb\n"));
        assert_ne!(line_digests(b"a\r\n"), line_digests(b"a\n"));
    }
}
