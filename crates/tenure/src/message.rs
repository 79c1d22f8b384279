//! What the program says on standard error. A closed pipe is no reason to panic, so nothing here prints with a macro
//! that would.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;

/// Says `what`, and under it everything that led to it.
pub fn complain(what: &str, error: &dyn Error) {
    let mut text = format!("tenure: {what}: {error}\n");
    let mut cause = error.source();
    while let Some(error) = cause {
        writeln!(text, "  because: {error}").expect("writing into a string");
        cause = error.source();
    }
    tell(&text);
}

/// Writes `text` to standard error, if anybody listens.
pub fn tell(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
