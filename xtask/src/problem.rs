//! The one error of these tasks. Whoever reads it is a person, so it answers what a person asks.

use std::fmt;
use std::path::Path;

/// What happened, what that means, and what to do about it.
#[derive(Debug)]
pub struct Problem {
    happened: String,
    means: String,
    remedy: String,
    exit_code: u8,
}

impl Problem {
    /// A problem that ends the task with exit code 1.
    pub fn new(happened: impl Into<String>, means: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { happened: happened.into(), means: means.into(), remedy: remedy.into(), exit_code: 1 }
    }

    /// A file that could not be read or written.
    pub fn file(path: &Path, error: &std::io::Error) -> Self {
        Self::new(
            format!("{}: {error}", path.display()),
            "the task cannot go on without this file",
            "see whether it exists, whether it is yours, and whether the disk is full",
        )
    }

    /// Ends the task with the exit code of the program that it ran.
    pub fn with_exit_code(mut self, code: Option<i32>) -> Self {
        self.exit_code = code.and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0).unwrap_or(1);
        self
    }

    /// What the process ends with; never 0.
    pub fn exit_code(&self) -> u8 {
        self.exit_code
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "error: {}", self.happened)?;
        writeln!(formatter, "  it means: {}", self.means)?;
        write!(formatter, "  to do:    {}", self.remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::Problem;

    #[test]
    fn a_problem_never_ends_with_success() {
        let problem = || Problem::new("a", "b", "c");
        assert_eq!(problem().exit_code(), 1);
        assert_eq!(problem().with_exit_code(Some(0)).exit_code(), 1);
        assert_eq!(problem().with_exit_code(None).exit_code(), 1);
        assert_eq!(problem().with_exit_code(Some(300)).exit_code(), 1);
        assert_eq!(problem().with_exit_code(Some(75)).exit_code(), 75);
    }
}
