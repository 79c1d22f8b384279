//! The stand-in's own process: runs one command after the other, and lives between them.

use std::io::{self, BufRead as _, Write as _};
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{Signal, set_parent_process_death_signal};

use super::{CommandOutput, CommandRequest};
use crate::exit;

/// Runs what is asked for, one line of JSON each, until nobody asks any more.
pub fn run() -> ExitCode {
    // What it holds must be free when the doctor is gone, however that ended.
    if set_parent_process_death_signal(Some(Signal::KILL)).is_err() {
        return exit::UNAVAILABLE.into();
    }
    for line in io::stdin().lock().lines() {
        let Some(line) = line.ok().and_then(|line| serde_json::from_str::<CommandRequest>(&line).ok()) else {
            break;
        };
        let result = perform(&line).unwrap_or_else(|error| CommandOutput {
            errors: format!("{} cannot be run: {error}", line.program),
            ..CommandOutput::default()
        });
        let Ok(text) = serde_json::to_string(&result) else { break };
        let mut output = io::stdout().lock();
        if writeln!(output, "{text}").and_then(|()| output.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

fn perform(line: &CommandRequest) -> io::Result<CommandOutput> {
    let mut command = Command::new(&line.program);
    command.args(&line.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A hook that does not read is judged by what it answers.
        let _ = input.write_all(line.input.as_bytes());
    }
    let output = child.wait_with_output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(CommandOutput {
        code: output.status.code(),
        output: text(&output.stdout),
        errors: text(&output.stderr),
    })
}
