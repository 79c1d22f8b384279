//! Whose each line is.

use serde::{Deserialize, Serialize};

use super::lines::{Line, digests, split, stayed};
use super::{Author, BlamedLine, Who};

/// Files up to here are looked at line by line. Above, and where it is no text, a file has one author.
const MOST_BYTES: usize = 1 << 20;

/// How far git looks for a NUL before it calls something text.
const LOOKED_AT: usize = 8_000;

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
