//! Bytes to lines: whatever a port sends, each line is one line of text, or one thing that is wrong with it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use tenure_control::problem::{Problem, ProblemCode};

/// The most bytes of a line, without its end.
pub const MAX_LINE_BYTES: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SerialLine {
    Text(String),
    Invalid(Problem),
}

/// Puts lines together. Carriage return, line feed and both are the end of a line; empty ones are none.
#[derive(Debug, Default)]
pub struct LineDecoder {
    partial: Vec<u8>,
    /// The line is too long already: nothing of it is kept, up to its end.
    is_too_long: bool,
}

impl LineDecoder {
    /// Takes what came, and says which lines have ended with it.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<SerialLine> {
        let mut lines = Vec::new();
        for &byte in bytes {
            match byte {
                b'\r' | b'\n' => lines.extend(self.end()),
                _ if self.is_too_long => {}
                _ if self.partial.len() == MAX_LINE_BYTES => {
                    self.is_too_long = true;
                    self.partial.clear();
                }
                _ => self.partial.push(byte),
            }
        }
        lines
    }

    fn end(&mut self) -> Option<SerialLine> {
        let bytes = std::mem::take(&mut self.partial);
        if std::mem::take(&mut self.is_too_long) {
            let message = format!(
                "The line has more than {MAX_LINE_BYTES} bytes and was not read; nothing of it was done"
            );
            return Some(SerialLine::Invalid(Problem::new(ProblemCode::TooLarge, message)));
        }
        let wrong = |message| Some(SerialLine::Invalid(Problem::new(ProblemCode::InvalidValue, message)));
        match String::from_utf8(bytes) {
            Ok(text) if text.chars().any(char::is_control) => {
                wrong("The line has a control character in it and was not read; write it again without one")
            }
            Ok(text) if text.trim_matches(' ').is_empty() => None,
            Ok(text) => Some(SerialLine::Text(text)),
            Err(_) => {
                wrong("The line is not UTF-8 and was not read; do both ends of the port have the same speed?")
            }
        }
    }
}

pub(super) const REQUEST_ID: &str = "requestId";

/// Reads words. The id is found even where something after it is wrong.
pub(super) fn parse_fields(mut rest: &str, id: &mut Option<String>) -> Result<Map<String, Value>, Problem> {
    let mut fields = Map::new();
    loop {
        rest = rest.trim_start_matches(' ');
        if rest.is_empty() {
            return Ok(fields);
        }
        let name = &rest[..rest.find(['=', ' ']).unwrap_or(rest.len())];
        let after = rest[name.len()..].strip_prefix('=');
        let Some(after) = after.filter(|_| is_name(name)) else {
            let message = "After the command come words FIELD=VALUE; one of these is none";
            return Err(Problem::new(ProblemCode::InvalidValue, message));
        };
        let (text, value, after) = value(name, after)?;
        rest = after;
        let is_first = if name == REQUEST_ID {
            id.replace(text).is_none()
        } else {
            fields.insert(name.to_owned(), value).is_none()
        };
        if !is_first {
            return Err(duplicate_field(name));
        }
    }
}

/// A field that stands twice: two programs could read it differently.
pub(super) fn duplicate_field(field: &str) -> Problem {
    Problem::of_field(ProblemCode::UnknownField, field, "stands twice; say it once")
}

/// A value at the beginning of `rest`: as it was written, as it is meant, and what comes behind it.
fn value<'a>(name: &str, rest: &'a str) -> Result<(String, Value, &'a str), Problem> {
    let wrong = |message| Err(Problem::of_field(ProblemCode::InvalidValue, name, message));
    if rest.starts_with('"') {
        let mut texts = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let Some(Ok(text)) = texts.next() else {
            return wrong("begins with a quotation mark and does not end with one, as text in JSON does");
        };
        let after = &rest[texts.byte_offset()..];
        if !after.is_empty() && !after.starts_with(' ') {
            return wrong("has something right behind its text; put a blank between");
        }
        return Ok((text.clone(), Value::String(text), after));
    }
    let text = &rest[..rest.find(' ').unwrap_or(rest.len())];
    let after = &rest[text.len()..];
    if text.is_empty() {
        return wrong("has no value; for text without letters write \"\"");
    }
    if text.contains('"') || text.starts_with(['{', '[']) {
        return wrong("is more than a word; put text in quotation marks, and lists in a line of JSON");
    }
    let value = match serde_json::from_str(text) {
        Ok(Value::Null) => return wrong("is null, which no field can be; leave it out"),
        Ok(value) => value,
        // Neither a number nor true or false.
        Err(_) => Value::String(text.to_owned()),
    };
    Ok((text.to_owned(), value, after))
}

fn is_name(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// An object, with the first of its names that stands twice.
pub(super) struct DuplicateCheckedObject {
    pub(super) fields: Map<String, Value>,
    pub(super) duplicate: Option<String>,
}

impl<'de> Deserialize<'de> for DuplicateCheckedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(JsonObjectVisitor)
    }
}

struct JsonObjectVisitor;

impl<'de> Visitor<'de> for JsonObjectVisitor {
    type Value = DuplicateCheckedObject;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<DuplicateCheckedObject, A::Error> {
        let mut object = DuplicateCheckedObject { fields: Map::new(), duplicate: None };
        while let Some((name, value)) = access.next_entry::<String, Value>()? {
            if object.fields.contains_key(&name) {
                object.duplicate.get_or_insert(name);
            } else {
                object.fields.insert(name, value);
            }
        }
        Ok(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &str) -> SerialLine {
        SerialLine::Text(line.to_owned())
    }

    fn code(line: &SerialLine) -> Option<ProblemCode> {
        match line {
            SerialLine::Text(_) => None,
            SerialLine::Invalid(problem) => Some(problem.code),
        }
    }

    #[test]
    fn lines_end_with_cr_lf_or_both_and_empty_lines_are_ignored() {
        let mut lines = LineDecoder::default();
        assert_eq!(lines.feed(b"a\rb\nc\r\n\n  \r\nd"), [text("a"), text("b"), text("c")]);
        assert_eq!(lines.feed(b"e\n"), [text("de")], "it goes on where it was");
    }

    #[test]
    fn a_line_of_512_bytes_is_read_and_a_longer_one_is_skipped_to_its_end() {
        let mut lines = LineDecoder::default();
        let longest = "x".repeat(MAX_LINE_BYTES);
        assert_eq!(lines.feed(format!("{longest}\n").as_bytes()), [text(&longest)]);
        let one_more = lines.feed(format!("{longest}x\n").as_bytes());
        assert_eq!(one_more.iter().map(code).collect::<Vec<_>>(), [Some(ProblemCode::TooLarge)]);
        for piece in [MAX_LINE_BYTES, 1, 100_000] {
            assert_eq!(lines.feed("x".repeat(piece).as_bytes()), [], "nothing is said before its end");
        }
        assert!(lines.partial.len() <= MAX_LINE_BYTES, "nothing of it is kept");
        let after = lines.feed(b"still the same\nstatus\n");
        assert_eq!(after.iter().map(code).collect::<Vec<_>>(), [Some(ProblemCode::TooLarge), None]);
        assert_eq!(after[1], text("status"));
    }

    #[test]
    fn an_invalid_line_is_rejected_and_the_next_line_is_read() {
        for noise in [&b"stat\xffus"[..], b"\xc3", b"sta\x08tus", b"\x1b[A", b"a\0b", b"a\tb", b"\xc2\x85"] {
            let mut lines = LineDecoder::default();
            let found = lines.feed(&[noise, b"\nstatus\n"].concat());
            let codes: Vec<_> = found.iter().map(code).collect();
            assert_eq!(codes, [Some(ProblemCode::InvalidValue), None], "{noise:?}");
        }
    }

    #[test]
    fn multibyte_characters_may_be_split_across_reads() {
        let mut lines = LineDecoder::default();
        assert_eq!(lines.feed(b"name=\"n\xc3"), []);
        assert_eq!(lines.feed(b"\xa4chtlich\"\n"), [text("name=\"nächtlich\"")]);
    }
}
