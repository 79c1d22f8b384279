//! Messages to people, wrapped to the terminal.

use std::io::IsTerminal as _;

use rustix::termios::{isatty, tcgetwinsize};
use tenure_host::stderr::print_stderr;

/// One line on standard error that is written over and over, if a terminal shows it.
#[derive(Debug)]
pub struct ProgressLine {
    shown: Option<String>,
    is_terminal: bool,
}

impl ProgressLine {
    pub fn new() -> Self {
        Self { shown: None, is_terminal: std::io::stderr().is_terminal() }
    }

    /// Shows `text` in place of what was shown before, as far as it fits: what does not would be shown again and
    /// again, one line under the other.
    pub fn show(&mut self, text: &str) {
        if !self.is_terminal {
            return;
        }
        let columns = rustix::termios::tcgetwinsize(std::io::stderr()).map_or(0, |size| size.ws_col);
        let columns = if columns == 0 { 80 } else { usize::from(columns) };
        let text: String = text.chars().filter(|letter| !letter.is_control()).take(columns - 1).collect();
        if self.shown.as_ref() != Some(&text) {
            print_stderr(&format!("\r{text}\x1b[K"));
            self.shown = Some(text);
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.shown.is_some() {
            print_stderr("\r\x1b[K");
        }
    }
}

/// No line is made shorter than this: on a narrower terminal nothing helps.
const MIN_COLUMNS: usize = 40;

/// The text as lines that fit on the terminal that standard output is, each after `indent` but the first, which follows
/// `begin`. One line, if it is none: programs read that.
pub fn wrap_paragraph(begin: &str, text: &str, indent: &str) -> String {
    let is_shown = isatty(std::io::stdout());
    let columns =
        tcgetwinsize(std::io::stdout()).ok().filter(|_| is_shown).map(|size| usize::from(size.ws_col));
    wrapped(begin, text, indent, columns.filter(|columns| *columns > 0).unwrap_or(usize::MAX))
}

fn wrapped(begin: &str, text: &str, indent: &str, columns: usize) -> String {
    let columns = columns.max(MIN_COLUMNS);
    let width = |text: &str| text.chars().count();
    let mut lines = begin.to_owned();
    let mut used = width(begin);
    let mut is_first = true;
    for word in text.split(' ') {
        if !is_first && used.saturating_add(1 + width(word)) > columns {
            lines.push('\n');
            lines.push_str(indent);
            used = width(indent);
            is_first = true;
        }
        if !is_first {
            lines.push(' ');
            used += 1;
        }
        lines.push_str(word);
        used += width(word);
        is_first = false;
    }
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraph_is_wrapped_between_words() {
        let text = "one two three four five six seven eight nine ten eleven";
        assert_eq!(wrapped("note: ", text, "  ", usize::MAX), format!("note: {text}\n"));
        let expected = "note: one two three four five six seven\n  eight nine ten eleven\n";
        assert_eq!(wrapped("note: ", text, "  ", 40), expected);
        assert_eq!(wrapped("note: ", text, "  ", 1), expected, "no narrower than that");
        let long = format!("a {} b", "x".repeat(60));
        assert_eq!(wrapped("", &long, "", 40), format!("a\n{}\nb\n", "x".repeat(60)));
    }
}
