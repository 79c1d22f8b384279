//! Running other programs, and the one error of these tasks.

use std::env;
use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use xshell::Cmd;

/// What went wrong and what to do about it.
#[derive(Debug)]
pub struct TaskError {
    what: String,
    hint: String,
    exit_code: u8,
}

impl TaskError {
    /// A problem that ends the task with exit code 1.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into(), exit_code: 1 }
    }

    /// Ends the task with the exit code of the program that it ran.
    pub fn with_exit_code(mut self, code: Option<i32>) -> Self {
        self.exit_code = code.and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0).unwrap_or(1);
        self
    }

    /// The exit code of this process; never 0.
    pub fn exit_code(&self) -> u8 {
        self.exit_code
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "error: {}\nhint: {}", self.what, self.hint)
    }
}

/// A file that could not be read or written: programs are run by the functions below, not by xshell.
impl From<xshell::Error> for TaskError {
    fn from(error: xshell::Error) -> Self {
        Self::new(error.to_string(), "check that the file exists and is yours, and that the disk is not full")
    }
}

/// The command without what cargo told this process about itself: a build script that looks at
/// `CARGO_PKG_NAME` would otherwise be built anew each time it is called from here.
pub fn without_cargo_variables(cmd: Cmd<'_>) -> Command {
    let mut command = Command::from(cmd);
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let about_this_package = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];
        if about_this_package.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs to the end with the terminal passed through; anything but success is a problem.
pub fn run(cmd: Cmd<'_>, hint: &str) -> Result<(), TaskError> {
    let mut command = without_cargo_variables(cmd);
    let status = command.status().map_err(|error| not_started(&command, &error))?;
    if status.success() { Ok(()) } else { Err(failed(&command, status, hint)) }
}

/// Runs to the end and returns standard output. Standard error is passed through.
pub fn output(cmd: Cmd<'_>, hint: &str) -> Result<String, TaskError> {
    let mut command = without_cargo_variables(cmd);
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| not_started(&command, &error))?;
    if !output.status.success() {
        return Err(failed(&command, output.status, hint));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs to the end without printing anything, and returns whether that was a success.
pub fn succeeds(cmd: Cmd<'_>) -> bool {
    without_cargo_variables(cmd).output().is_ok_and(|output| output.status.success())
}

/// Runs to the end and hands each line of standard output to `each`, as it comes.
pub fn stream_output_lines(cmd: Cmd<'_>, hint: &str, mut each: impl FnMut(&str)) -> Result<(), TaskError> {
    let mut command = without_cargo_variables(cmd);
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| not_started(&command, &error))?;
    for line in child.stdout.take().into_iter().flat_map(|stdout| BufReader::new(stdout).split(b'\n')) {
        each(&String::from_utf8_lossy(&line.map_err(|error| not_started(&command, &error))?));
    }
    let status = child.wait().map_err(|error| not_started(&command, &error))?;
    if status.success() { Ok(()) } else { Err(failed(&command, status, hint)) }
}

/// The problem that `command` ended with `status`.
pub fn failed(command: &Command, status: ExitStatus, hint: &str) -> TaskError {
    TaskError::new(format!("`{}` ended with {status}", shown(command)), hint).with_exit_code(status.code())
}

/// The problem that `command` could not be run.
pub fn not_started(command: &Command, error: &io::Error) -> TaskError {
    let hint = "install the program, or check that PATH names its folder";
    TaskError::new(format!("`{}` could not be run: {error}", shown(command)), hint)
}

/// The command as one would type it, without the folder of the program.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let words = std::iter::once(name).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Prints a line. A reader that is gone (`| head`) is no reason to stop.
pub fn print_line(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Where `program` is, if it is on the PATH.
pub fn find_program(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Measures a step for the person who waits for it.
pub struct Stopwatch(Instant);

#[expect(clippy::disallowed_methods, reason = "durations of steps are shown to people and decide nothing")]
impl Stopwatch {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use xshell::{Shell, cmd};

    use super::*;

    #[test]
    fn a_problem_never_ends_with_success() {
        let problem = || TaskError::new("a", "b");
        assert_eq!(problem().exit_code(), 1);
        assert_eq!(problem().with_exit_code(Some(0)).exit_code(), 1);
        assert_eq!(problem().with_exit_code(None).exit_code(), 1);
        assert_eq!(problem().with_exit_code(Some(300)).exit_code(), 1);
        assert_eq!(problem().with_exit_code(Some(75)).exit_code(), 75);
    }

    #[test]
    fn a_failure_shows_what_was_run_and_keeps_its_exit_code() {
        let shell = Shell::new().expect("a shell");
        for result in [
            run(cmd!(shell, "/bin/sh -c 'exit 7'"), "the hint"),
            output(cmd!(shell, "/bin/sh -c 'exit 7'"), "the hint").map(drop),
            stream_output_lines(cmd!(shell, "/bin/sh -c 'exit 7'"), "the hint", |_| {}),
        ] {
            let problem = result.expect_err("it exits with 7");
            assert_eq!(problem.exit_code(), 7);
            let text = problem.to_string();
            assert!(text.contains("`sh -c exit 7` ended with exit status: 7"), "{text}");
            assert!(text.contains("\nhint: the hint"), "{text}");
        }
        assert!(!succeeds(cmd!(shell, "/bin/sh -c 'exit 7'")) && succeeds(cmd!(shell, "/bin/sh -c true")));
    }

    #[test]
    fn watch_passes_output_line_by_line() {
        let mut seen = Vec::new();
        let shell = Shell::new().expect("a shell");
        let script = cmd!(shell, "/bin/sh -c 'printf \"one\\ntwo\"'");
        stream_output_lines(script, "", |line| seen.push(line.to_owned())).expect("success");
        assert_eq!(seen, ["one", "two"]);
    }
}
