//! Messages on standard error, which may be closed.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;

/// Says `what`, and under it everything that led to it.
pub fn print_error(what: &str, error: &dyn Error) {
    print_stderr(&format_error(what, error));
}

/// What [`print_error`] says.
pub fn format_error(what: &str, error: &dyn Error) -> String {
    let mut text = format!("tenure: {what}: {error}\n");
    let mut cause = error.source();
    while let Some(error) = cause {
        writeln!(text, "  because: {error}").expect("writing into a string");
        cause = error.source();
    }
    text
}

/// Writes `text` to standard error, if anybody listens.
pub fn print_stderr(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
