//! What the program says on standard error. A closed pipe is no reason to panic, so nothing here prints with a macro
//! that would.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};

/// Says `what`, and under it everything that led to it.
pub fn complain(what: &str, error: &dyn Error) {
    tell(&explain(what, error));
}

/// What [`complain`] says.
pub fn explain(what: &str, error: &dyn Error) -> String {
    let mut text = format!("tenure: {what}: {error}\n");
    let mut cause = error.source();
    while let Some(error) = cause {
        writeln!(text, "  because: {error}").expect("writing into a string");
        cause = error.source();
    }
    text
}

/// Writes `text` to standard error, if anybody listens.
pub fn tell(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// One line on standard error that is written over and over, if a terminal shows it.
#[derive(Debug)]
pub struct Progress {
    shown: Option<String>,
    is_terminal: bool,
}

impl Progress {
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
            tell(&format!("\r{text}\x1b[K"));
            self.shown = Some(text);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            tell("\r\x1b[K");
        }
    }
}
