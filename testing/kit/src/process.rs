//! Processes, and what they leave behind.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::{fs, io};

use serde_json::Value;

/// How a command ended, and what it wrote.
#[derive(Debug)]
pub struct CommandOutput {
    /// `None`: a signal ended it.
    pub code: Option<i32>,
    pub output: String,
    pub errors: String,
}

impl CommandOutput {
    pub fn from_output(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), output: text(output.stdout), errors: text(output.stderr) }
    }

    /// The JSON that it printed, whatever its exit code is.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.output).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// The one JSON value on standard output of a command that succeeded, and wrote nothing else.
    #[track_caller]
    pub fn expect_json(&self) -> Value {
        assert_eq!((self.code, self.errors.as_str()), (Some(0), ""), "{}", self.output);
        assert_eq!(self.output.lines().count(), 1, "{}", self.output);
        self.json()
    }
}

/// A child process that is killed when it is dropped.
pub struct KillOnDrop(pub Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal by its name.
pub fn signal(process: u32, name: &str) {
    let kill = format!("kill -{name} {process}");
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

/// Whether no process holds the lock on this file, or there is no such file.
pub fn is_file_unlocked(path: &Path) -> bool {
    let mut flock = Command::new("flock");
    !path.exists() || flock.arg("-n").arg(path).arg("true").stderr(Stdio::null()).status().unwrap().success()
}

/// Which processes have a file open: what they are, and for which session.
pub fn processes_using(path: &Path) -> Vec<String> {
    let read = |process: &Path, name: &str| fs::read_to_string(process.join(name)).unwrap_or_default();
    let mut users = Vec::new();
    for process in fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path()) {
        let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        if files
            .map(|file| fs::read_link(file.path()))
            .any(|target| target.is_ok_and(|target| target == path))
        {
            let (line, environment) = (read(&process, "cmdline"), read(&process, "environ"));
            let session = environment.split('\0').find(|variable| variable.starts_with("TENURE_SESSION="));
            users.push(format!("{} {line:?} {session:?} {:?}", process.display(), read(&process, "stat")));
        }
    }
    users
}

/// What is in a file; nothing, if there is none.
pub fn read_or_empty(path: &Path) -> String {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read.unwrap(),
    }
}

/// A process with the name of a coding agent. It runs lines of shell one by one, and lives between them.
pub struct FakeAgent {
    pub kind: &'static str,
    /// Its program and the output of its lines.
    pub folder: PathBuf,
    process: KillOnDrop,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    lines: u32,
}

impl FakeAgent {
    /// Starts an agent of this kind. `folder` is made for it; the environment and the working directory are those of
    /// `like`.
    pub fn start_with_environment_of(like: &Command, kind: &'static str, folder: PathBuf) -> Self {
        fs::create_dir(&folder).unwrap();
        let program = folder.join(kind);
        // In another process: a program that a thread of this one still has open for writing cannot be started.
        assert!(Command::new("cp").arg("/bin/bash").arg(&program).status().unwrap().success());
        let mut command = Command::new(&program);
        command.env_clear().envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.args(["-c", r#"while read -r line; do eval "$line"; echo "code $?"; done"#]);
        command.current_dir(like.get_current_dir().unwrap_or(&folder));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let (process, output) = (KillOnDrop(process), BufReader::new(output));
        Self { kind, folder, process, input, output, lines: 0 }
    }

    pub fn process_id(&self) -> u32 {
        self.process.0.id()
    }

    /// Begins to run a line of shell.
    pub fn start_line(&mut self, line: &str) {
        self.lines += 1;
        let (out, err) = (self.output_file("out"), self.output_file("err"));
        writeln!(self.input, "{line} > {} 2> {}", out.display(), err.display()).unwrap();
        self.input.flush().unwrap();
    }

    /// Waits for the end of the line.
    pub fn finish_line(&mut self) -> CommandOutput {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let code = line.trim().strip_prefix("code ").and_then(|code| code.parse().ok());
        let text = |kind| fs::read_to_string(self.output_file(kind)).unwrap();
        CommandOutput { code, output: text("out"), errors: text("err") }
    }

    pub fn run_line(&mut self, line: &str) -> CommandOutput {
        self.start_line(line);
        self.finish_line()
    }

    /// Runs a line as it is, which may open and close files of the agent's own process.
    pub fn run_line_unredirected(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
        let mut ended = String::new();
        self.output.read_line(&mut ended).unwrap();
        assert!(ended.starts_with("code "), "{ended:?}");
    }

    /// Where the last line's output (`out`) or errors (`err`) are.
    pub fn output_file(&self, kind: &str) -> PathBuf {
        self.folder.join(format!("{kind}-{}", self.lines))
    }

    /// How many lines it was given.
    pub fn line_count(&self) -> u32 {
        self.lines
    }
}
