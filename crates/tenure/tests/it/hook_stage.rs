//! A repository, agents that edit in it, and whatever server their hooks start.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use rustix::net::sockopt::socket_peercred;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::wait_until;
use crate::program::tenure;

/// A folder with a repository in it. The server that somebody starts there is killed with it.
pub struct Stage {
    folder: TempDir,
}

/// What a command did.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub output: String,
    pub errors: String,
}

impl Stage {
    /// A repository with one commit, which has `a` and `b`.
    pub fn new() -> Self {
        let stage = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(stage.repository("")).unwrap();
        for line in [
            "git init --quiet --initial-branch main",
            "echo one > a; echo one > b",
            "git add .; git commit --quiet --message begin",
        ] {
            let said = stage.shell(line);
            assert_eq!(said.code, Some(0), "{said:?}");
        }
        stage
    }

    /// The same, where the one retry is due after so many seconds.
    pub fn with_retry_after(seconds: u32) -> Self {
        let stage = Self::new();
        stage.configure(&format!("[files]\nretry_seconds = {seconds}\n"));
        stage
    }

    pub fn configure(&self, text: &str) {
        fs::create_dir_all(self.path(".config/tenure")).unwrap();
        fs::write(self.path(".config/tenure/config.toml"), text).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A file of the repository.
    pub fn repository(&self, name: &str) -> PathBuf {
        self.path("repository").join(name)
    }

    /// `tenure` with these arguments, in the repository.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = tenure(self.folder.path());
        command.args(arguments).env("PATH", "/usr/bin:/bin").current_dir(self.repository(""));
        command
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &[&str]) -> Said {
        Said::of(self.command(arguments).output().unwrap())
    }

    /// The JSON that it prints, whatever its exit code is.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let said = self.run(arguments);
        serde_json::from_str(&said.output).unwrap_or_else(|_| panic!("{said:?}"))
    }

    /// A line of shell in the repository; `$TENURE` is the program.
    pub fn shell(&self, line: &str) -> Said {
        Said::of(self.shell_command(line).output().unwrap())
    }

    pub fn shell_command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        let environment = self.command(&[]);
        command.env_clear().envs(environment.get_envs().filter_map(|(name, value)| Some((name, value?))));
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "tester").env(format!("GIT_{role}_EMAIL"), "t@example");
        }
        command.env("TENURE", env!("CARGO_BIN_EXE_tenure")).current_dir(self.repository(""));
        command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A hook that is being asked. Its parent is this test.
    pub fn asking(&self, agent: &str, payload: &[u8]) -> Child {
        let mut command = self.command(&["hook", agent]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // A hook that ends without reading is a story of its own.
        let _ = child.stdin.take().unwrap().write_all(payload);
        child
    }

    /// The answer of a hook to this payload.
    pub fn hook(&self, agent: &str, payload: &[u8]) -> Said {
        Said::of(self.asking(agent, payload).wait_with_output().unwrap())
    }

    /// Claude Code, in this session, is about to edit this file.
    pub fn edit(&self, session: &str, file: &str) -> Value {
        json!({
            "session_id": session, "cwd": self.repository(""), "hook_event_name": "PreToolUse", "tool_name": "Edit",
            "tool_input": {"file_path": self.repository(file), "old_string": "one", "new_string": "two"},
            "tool_use_id": "call-1",
        })
    }

    /// Another event of this session.
    pub fn event(&self, session: &str, name: &str) -> Value {
        json!({"session_id": session, "cwd": self.repository(""), "hook_event_name": name, "reason": "other"})
    }

    /// The process that listens on this stage's socket.
    pub fn daemon(&self) -> Option<u32> {
        let stream = UnixStream::connect(self.path("tenure/tenure.sock")).ok()?;
        u32::try_from(socket_peercred(stream).ok()?.pid.as_raw_nonzero().get()).ok()
    }

    /// Which processes serve for this stage.
    pub fn servers(&self) -> Vec<u32> {
        let own = self.folder.path().to_str().unwrap();
        let serves = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            line.contains("serve\0") && line.contains(own)
        };
        let entries = fs::read_dir("/proc").unwrap().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(serves).collect()
    }

    /// What the daemon wrote down.
    pub fn log(&self) -> String {
        fs::read_to_string(self.path(".local/state/tenure-daemon.log")).unwrap_or_default()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for server in self.servers() {
            crate::commands::signal(server, "KILL");
        }
    }
}

impl Said {
    pub fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), output: text(output.stdout), errors: text(output.stderr) }
    }

    /// Whether Claude Code would let the edit happen.
    pub fn allows(&self) -> bool {
        self.code == Some(0) && !self.output.contains("\"deny\"")
    }

    /// Why it would not.
    pub fn reason(&self) -> String {
        let answer: Value = serde_json::from_str(&self.output).unwrap_or_else(|_| panic!("{self:?}"));
        let specific = &answer["hookSpecificOutput"];
        assert_eq!(specific["permissionDecision"], "deny", "{self:?}");
        specific["permissionDecisionReason"].as_str().unwrap().to_owned()
    }
}

/// A process that is called like an agent, runs hooks one by one, and lives between them.
pub struct FakeAgent {
    kind: &'static str,
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: PathBuf,
    asked: u32,
}

impl FakeAgent {
    pub fn start(stage: &Stage, name: &str) -> Self {
        Self::of_kind(stage, name, "claude")
    }

    /// The same, called like this agent.
    pub fn of_kind(stage: &Stage, name: &str, kind: &'static str) -> Self {
        let folder = stage.path(name);
        fs::create_dir(&folder).unwrap();
        let program = folder.join(kind);
        // By a process of its own: a program that a thread here still has open for writing cannot be started.
        let copied = Command::new("cp").arg("/bin/bash").arg(&program).status().unwrap();
        assert!(copied.success());
        let script = r#"while read -r line; do eval "$line"; echo "code $?"; done"#;
        let mut command = stage.shell_command("");
        let environment: Vec<_> = command
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
            .collect();
        command = Command::new(&program);
        command.env_clear().envs(environment).current_dir(stage.repository("")).args(["-c", script]);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Self { kind, process, input, output: BufReader::new(output), folder, asked: 0 }
    }

    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// Begins to run a line of shell.
    pub fn begin(&mut self, line: &str) {
        self.asked += 1;
        let (out, err) = (self.file("out"), self.file("err"));
        writeln!(self.input, "{line} > {} 2> {}", out.display(), err.display()).unwrap();
        self.input.flush().unwrap();
    }

    /// Waits for its end.
    pub fn end(&mut self) -> Said {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let code = line.trim().strip_prefix("code ").and_then(|code| code.parse().ok());
        let text = |path: &Path| fs::read_to_string(path).unwrap();
        Said { code, output: text(&self.file("out")), errors: text(&self.file("err")) }
    }

    pub fn run(&mut self, line: &str) -> Said {
        self.begin(line);
        self.end()
    }

    /// Begins to ask through the hook.
    pub fn begin_hook(&mut self, payload: &Value) {
        let path = self.folder.join(format!("payload-{}", self.asked + 1));
        fs::write(&path, payload.to_string()).unwrap();
        self.begin(&format!("\"$TENURE\" hook {} < {}", self.kind, path.display()));
    }

    /// Asks through the hook, and waits for the answer.
    pub fn hook(&mut self, payload: &Value) -> Said {
        self.begin_hook(payload);
        self.end()
    }

    /// Waits until the hook that was begun says that it waits.
    pub fn waits(&self) {
        let errors = self.file("err");
        wait_until("the hook waits", || {
            fs::read_to_string(&errors).is_ok_and(|text| text.contains("tenure: contention: "))
        });
    }

    fn file(&self, kind: &str) -> PathBuf {
        self.folder.join(format!("{kind}-{}", self.asked))
    }
}

impl Drop for FakeAgent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
