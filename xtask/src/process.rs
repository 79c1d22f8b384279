//! Running other programs, and measuring how long that took.

use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use crate::problem::Problem;

/// A command that does not see what cargo told this process about itself: a build script that
/// looks at `CARGO_PKG_NAME` would otherwise be built anew each time it is called from here.
pub fn command(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new(program.as_ref());
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let about_this_package = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];
        if about_this_package.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    command
}

/// The cargo that runs this task, so that every step uses the same toolchain.
pub fn cargo() -> Command {
    command(env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from))
}

/// Runs to the end with the terminal passed through.
pub fn status(command: &mut Command) -> Result<ExitStatus, Problem> {
    command.status().map_err(|error| not_started(command, &error))
}

/// Runs to the end with the terminal passed through; anything but success is a problem, explained by `means` and `remedy`.
pub fn succeed(command: &mut Command, means: &str, remedy: &str) -> Result<(), Problem> {
    let status = status(command)?;
    if status.success() {
        return Ok(());
    }
    Err(failed(command, status, means, remedy))
}

/// Runs to the end and returns standard output. Standard error is passed through.
pub fn output(command: &mut Command, means: &str, remedy: &str) -> Result<String, Problem> {
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| not_started(command, &error))?;
    if !output.status.success() {
        return Err(failed(command, output.status, means, remedy));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs to the end and hands each line of standard output to `each`, as it comes.
pub fn watch(command: &mut Command, each: impl FnMut(&str)) -> Result<ExitStatus, Problem> {
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| not_started(command, &error))?;
    let lines = child.stdout.take().map(BufReader::new);
    finish(command, child, lines, each)
}

/// Like [`watch`], for programs that report on standard error.
pub fn watch_errors(command: &mut Command, each: impl FnMut(&str)) -> Result<ExitStatus, Problem> {
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(|error| not_started(command, &error))?;
    let lines = child.stderr.take().map(BufReader::new);
    finish(command, child, lines, each)
}

fn finish(
    command: &Command,
    mut child: Child,
    lines: Option<impl BufRead>,
    mut each: impl FnMut(&str),
) -> Result<ExitStatus, Problem> {
    for line in lines.into_iter().flat_map(|reader| reader.split(b'\n')) {
        let line = line.map_err(|error| not_started(command, &error))?;
        each(&String::from_utf8_lossy(&line));
    }
    child.wait().map_err(|error| not_started(command, &error))
}

/// The problem that `command` ended with `status`.
pub fn failed(command: &Command, status: ExitStatus, means: &str, remedy: &str) -> Problem {
    Problem::new(format!("`{}` ended with {status}", shown(command)), means, remedy)
        .with_exit_code(status.code())
}

fn not_started(command: &Command, error: &std::io::Error) -> Problem {
    Problem::new(
        format!("`{}` could not be run: {error}", shown(command)),
        "the program is missing or may not be executed",
        "install it, or see whether PATH names its folder",
    )
}

/// The command as one would type it, without the folder of the program.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let words = std::iter::once(name).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Prints a line for whoever reads it. If nobody does any more (`| head`), that is no reason to stop.
pub fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Where `program` is, if it is on the PATH.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Measures a step for the person who waits for it.
pub struct Stopwatch(Instant);

#[expect(clippy::disallowed_methods, reason = "durations of steps are shown to people and decide nothing")]
impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_shows_what_was_run_and_keeps_its_exit_code() {
        let mut command = command("/bin/sh");
        command.args(["-c", "exit 7"]);
        let problem = succeed(&mut command, "the meaning", "the remedy").expect_err("it exits with 7");
        assert_eq!(problem.exit_code(), 7);
        let text = problem.to_string();
        assert!(text.contains("`sh -c exit 7` ended with exit status: 7"), "{text}");
        assert!(text.contains("the meaning") && text.contains("the remedy"), "{text}");
    }

    #[test]
    fn both_streams_can_be_watched_line_by_line() {
        let mut seen = Vec::new();
        let mut script = command("/bin/sh");
        script.args(["-c", "printf 'one\\ntwo'"]);
        assert!(watch(&mut script, |line| seen.push(line.to_owned())).is_ok_and(|status| status.success()));
        let mut script = command("/bin/sh");
        script.args(["-c", "echo three >&2"]);
        assert!(
            watch_errors(&mut script, |line| seen.push(line.to_owned())).is_ok_and(|status| status.success())
        );
        assert_eq!(seen, ["one", "two", "three"]);
    }
}
