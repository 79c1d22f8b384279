//! A process with the name of an agent, which runs what that agent would run.
//!
//! A request for a file is attributed to the agent's process above it. So a canary that runs from here belongs to a process
//! of the doctor, whatever started the doctor: it is part of no other session, and ends with the doctor.

use std::io;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};
use tenure_guard::end_with_descendants;
use tenure_host::coding_agent::CodingAgent;

use crate::exit;

/// What a stand-in is started as. No command for people.
pub const NAME: &str = "__doctor-stand-in";

/// How long a command may take. A hook may start the server, which may take eight seconds.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);

static STARTED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// What a stand-in is to run.
#[derive(Debug, Serialize, Deserialize)]
pub struct CommandRequest {
    program: String,
    arguments: Vec<String>,
    input: String,
}

/// What a command said, and how it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandOutput {
    /// Its exit code; nothing, if a signal ended it or it did not run.
    pub code: Option<i32>,
    /// What it said on standard output.
    pub output: String,
    pub errors: String,
}

/// A process that is called like an agent. It ends when this is dropped, with all that it started.
pub struct FakeAgent {
    process: Child,
    input: Option<ChildStdin>,
    outputs: Receiver<CommandOutput>,
}

impl FakeAgent {
    /// Starts one that stands in for this agent.
    pub fn start(agent: CodingAgent) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0(name(agent)).arg(NAME);
        // Who asks here is nobody's session but its own.
        command.env_remove("TENURE_SESSION").env_remove("TENURE_SUBAGENT");
        // What the system says shall be understood.
        command.env("LC_ALL", "C");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        STARTED.lock().push(process.id());
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let (sender, answers) = channel();
        let stand_in = Self { process, input, outputs: answers };
        let output = output.ok_or_else(|| io::Error::other("it says nothing"))?;
        std::thread::Builder::new().spawn(move || {
            for line in BufReader::new(output).lines() {
                let Some(result) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else {
                    return;
                };
                if sender.send(result).is_err() {
                    return;
                }
            }
        })?;
        Ok(stand_in)
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Runs this line of shell, as agents run their hooks.
    pub fn run_shell(&mut self, line: &str, input: &str) -> Result<CommandOutput, String> {
        self.run("sh", &["-c", line], input)
    }

    /// Runs a program to its end. An error says why there is none.
    pub fn run(&mut self, program: &str, arguments: &[&str], input: &str) -> Result<CommandOutput, String> {
        let line = CommandRequest {
            program: program.to_owned(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
            input: input.to_owned(),
        };
        let text = serde_json::to_string(&line).map_err(|error| error.to_string())?;
        let stream = self.input.as_mut().ok_or("nobody is there who could run it")?;
        writeln!(stream, "{text}").map_err(|error| error.to_string())?;
        self.outputs.recv_timeout(COMMAND_TIMEOUT).map_err(|_| {
            self.end();
            format!("no answer within {} s", COMMAND_TIMEOUT.as_secs())
        })
    }

    fn end(&mut self) {
        self.input = None;
        end_with_descendants(vec![self.process.id()]);
        let _ = self.process.wait();
    }
}

impl Drop for FakeAgent {
    fn drop(&mut self) {
        if self.input.is_some() {
            self.end();
        }
    }
}

/// Whether this was one of ours.
pub fn is_fake_agent(process: u32) -> bool {
    STARTED.lock().contains(&process)
}

/// What the agent's process is called.
fn name(agent: CodingAgent) -> &'static str {
    match agent {
        CodingAgent::Cursor => "cursor-agent",
        agent => agent.as_str(),
    }
}

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
