//! Bytes to lines: whatever a port sends, each line is one line of text, or one thing that is wrong with it.

use crate::problem::{Problem, ProblemCode};

/// The most bytes of a line, without its end.
pub const LONGEST: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Text(String),
    Wrong(Problem),
}

/// Puts lines together. Carriage return, line feed and both are the end of a line; empty ones are none.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
    /// The line is too long already: nothing of it is kept, up to its end.
    is_too_long: bool,
}

impl Lines {
    /// Takes what came, and says which lines have ended with it.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        for &byte in bytes {
            match byte {
                b'\r' | b'\n' => lines.extend(self.end()),
                _ if self.is_too_long => {}
                _ if self.begun.len() == LONGEST => {
                    self.is_too_long = true;
                    self.begun.clear();
                }
                _ => self.begun.push(byte),
            }
        }
        lines
    }

    fn end(&mut self) -> Option<Line> {
        let bytes = std::mem::take(&mut self.begun);
        if std::mem::take(&mut self.is_too_long) {
            let message =
                format!("The line has more than {LONGEST} bytes and was not read; nothing of it was done");
            return Some(Line::Wrong(Problem::new(ProblemCode::TooLarge, message)));
        }
        let wrong = |message| Some(Line::Wrong(Problem::new(ProblemCode::InvalidValue, message)));
        match String::from_utf8(bytes) {
            Ok(text) if text.chars().any(char::is_control) => {
                wrong("The line has a control character in it and was not read; write it again without one")
            }
            Ok(text) if text.trim_matches(' ').is_empty() => None,
            Ok(text) => Some(Line::Text(text)),
            Err(_) => {
                wrong("The line is not UTF-8 and was not read; do both ends of the port have the same speed?")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &str) -> Line {
        Line::Text(line.to_owned())
    }

    fn code(line: &Line) -> Option<ProblemCode> {
        match line {
            Line::Text(_) => None,
            Line::Wrong(problem) => Some(problem.code),
        }
    }

    #[test]
    fn lines_end_with_cr_lf_or_both_and_empty_lines_are_ignored() {
        let mut lines = Lines::default();
        assert_eq!(lines.take(b"a\rb\nc\r\n\n  \r\nd"), [text("a"), text("b"), text("c")]);
        assert_eq!(lines.take(b"e\n"), [text("de")], "it goes on where it was");
    }

    #[test]
    fn a_line_of_512_bytes_is_read_and_a_longer_one_is_skipped_to_its_end() {
        let mut lines = Lines::default();
        let longest = "x".repeat(LONGEST);
        assert_eq!(lines.take(format!("{longest}\n").as_bytes()), [text(&longest)]);
        let one_more = lines.take(format!("{longest}x\n").as_bytes());
        assert_eq!(one_more.iter().map(code).collect::<Vec<_>>(), [Some(ProblemCode::TooLarge)]);
        for piece in [LONGEST, 1, 100_000] {
            assert_eq!(lines.take("x".repeat(piece).as_bytes()), [], "nothing is said before its end");
        }
        assert!(lines.begun.len() <= LONGEST, "nothing of it is kept");
        let after = lines.take(b"still the same\nstatus\n");
        assert_eq!(after.iter().map(code).collect::<Vec<_>>(), [Some(ProblemCode::TooLarge), None]);
        assert_eq!(after[1], text("status"));
    }

    #[test]
    fn an_invalid_line_is_rejected_and_the_next_line_is_read() {
        for noise in [&b"stat\xffus"[..], b"\xc3", b"sta\x08tus", b"\x1b[A", b"a\0b", b"a\tb", b"\xc2\x85"] {
            let mut lines = Lines::default();
            let found = lines.take(&[noise, b"\nstatus\n"].concat());
            let codes: Vec<_> = found.iter().map(code).collect();
            assert_eq!(codes, [Some(ProblemCode::InvalidValue), None], "{noise:?}");
        }
    }

    #[test]
    fn multibyte_characters_may_be_split_across_reads() {
        let mut lines = Lines::default();
        assert_eq!(lines.take(b"name=\"n\xc3"), []);
        assert_eq!(lines.take(b"\xa4chtlich\"\n"), [text("name=\"nächtlich\"")]);
    }
}
