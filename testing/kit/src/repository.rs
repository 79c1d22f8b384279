//! A repository, agents that edit in it, and whatever server their hooks start.

use std::fs;
use std::io::Write as _;
use std::ops::Deref;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::net::sockopt::socket_peercred;
use serde_json::{Value, json};

use crate::home::TestHome;
use crate::process::{CommandOutput, FakeAgent, signal};
use crate::program::{program_path, run_command};
use crate::wait::wait_until;

/// A repository in a home directory of its own, in which commands run. A server that is started there is killed with it.
pub struct TestRepository(TestHome);

impl Deref for TestRepository {
    type Target = TestHome;

    fn deref(&self) -> &TestHome {
        &self.0
    }
}

impl Default for TestRepository {
    fn default() -> Self {
        Self::new()
    }
}

impl TestRepository {
    /// A repository with one commit, which has `a` and `b`.
    pub fn new() -> Self {
        let mut home = TestHome::without_server();
        home.directory = "repository";
        let repo = Self(home);
        fs::create_dir(repo.file("")).unwrap();
        let done = repo.shell(
            "git init --quiet --initial-branch main; echo one > a; echo one > b; git add .; \
             git commit --quiet --message begin",
        );
        assert_eq!(done.code, Some(0), "{done:?}");
        repo
    }

    /// The same, where the one retry is due after so many seconds.
    pub fn with_retry_after(seconds: u32) -> Self {
        Self::configured(&format!("[files]\nretry_seconds = {seconds}\n"))
    }

    /// The same with these seconds until the one retry, and until an idle session releases its files.
    pub fn with_retry_and_idle(retry: u32, idle: u32) -> Self {
        Self::configured(&format!("[files]\nretry_seconds = {retry}\nidle_seconds = {idle}\n"))
    }

    fn configured(text: &str) -> Self {
        let repo = Self::new();
        repo.configure(text);
        repo
    }

    /// A file of the repository.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path("repository").join(name)
    }

    /// The JSON that a command prints, whatever its exit code is.
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.run(arguments).json()
    }

    /// A line of shell in the repository; `$TENURE` is the program.
    pub fn shell(&self, line: &str) -> CommandOutput {
        run_command(&mut self.shell_command(line))
    }

    pub fn shell_command(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        let environment = self.command(&[]);
        command.env_clear().envs(environment.get_envs().filter_map(|(name, value)| Some((name, value?))));
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "tester").env(format!("GIT_{role}_EMAIL"), "t@example");
        }
        command.env("TENURE", program_path()).current_dir(self.file(""));
        command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A hook that is being asked. Its parent is this test.
    pub fn spawn_hook(&self, agent: &str, payload: &[u8]) -> Child {
        let mut command = self.command(&["hook", agent]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // A hook that ends without reading is a story of its own.
        let _ = child.stdin.take().unwrap().write_all(payload);
        child
    }

    /// The answer of a hook to this payload.
    pub fn run_hook(&self, agent: &str, payload: &[u8]) -> CommandOutput {
        CommandOutput::from_output(self.spawn_hook(agent, payload).wait_with_output().unwrap())
    }

    /// Claude Code, in this session, is about to edit this file.
    pub fn edit_payload(&self, session: &str, file: &str) -> Value {
        json!({
            "session_id": session, "cwd": self.file(""), "hook_event_name": "PreToolUse", "tool_name": "Edit",
            "tool_input": {"file_path": self.file(file), "old_string": "one", "new_string": "two"},
            "tool_use_id": "call-1",
        })
    }

    /// Another event of this session.
    pub fn event_payload(&self, session: &str, name: &str) -> Value {
        json!({"session_id": session, "cwd": self.file(""), "hook_event_name": name, "reason": "other"})
    }

    /// The process that listens on this stage's socket.
    pub fn daemon_pid(&self) -> Option<u32> {
        let stream = UnixStream::connect(self.path("tenure/tenure.sock")).ok()?;
        u32::try_from(socket_peercred(stream).ok()?.pid.as_raw_nonzero().get()).ok()
    }

    /// Which processes serve for this repo.
    pub fn server_pids(&self) -> Vec<u32> {
        let own = self.folder().to_str().unwrap();
        let serves = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            line.contains("serve\0") && line.contains(own)
        };
        let entries = fs::read_dir("/proc").unwrap().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(serves).collect()
    }

    /// What the daemon wrote down.
    pub fn daemon_log(&self) -> String {
        fs::read_to_string(self.path(".local/state/tenure-daemon.log")).unwrap_or_default()
    }

    /// All events of this kind in the ledger, oldest first.
    pub fn ledger_events(&self, kind: &str) -> Vec<Value> {
        let done = self.run(&["log", "--json"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        let events = done.output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["type"] == kind).collect()
    }

    /// The session that has this file, if one has.
    pub fn owner_session(&self, file: &str) -> Option<String> {
        let found = self.json(&["who", file, "--json"]);
        found["file"]["owner"]["session"].as_str().map(str::to_owned)
    }

    /// The files that are held.
    pub fn held_files(&self) -> Vec<String> {
        let files = self.json(&["files", "--json"]);
        files.as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect()
    }

    /// Claude Code, in this session, has edited this file.
    pub fn post_edit_payload(&self, session: &str, file: &str) -> Value {
        let mut event = self.edit_payload(session, file);
        event["hook_event_name"] = json!("PostToolUse");
        event["tool_response"] = json!({});
        event
    }

    /// Codex, in code mode, is about to patch this file.
    pub fn patch_payload(&self, session: &str, file: &str) -> Value {
        let patch = format!("*** Begin Patch\n*** Update File: {file}\n@@\n-one\n+two\n*** End Patch\n");
        json!({
            "session_id": session, "turn_id": "t", "cwd": self.file(""), "hook_event_name": "PreToolUse",
            "tool_name": "apply_patch", "tool_use_id": "exec-1", "tool_input": {"command": patch},
        })
    }
}

impl Drop for TestRepository {
    fn drop(&mut self) {
        self.server_pids().into_iter().for_each(|server| signal(server, "KILL"));
    }
}

impl CommandOutput {
    /// Whether Claude Code would let the edit happen.
    pub fn is_allowed(&self) -> bool {
        self.code == Some(0) && !self.output.contains("\"deny\"")
    }

    /// Why it would not.
    #[track_caller]
    pub fn denial_reason(&self) -> String {
        let specific = &self.json()["hookSpecificOutput"];
        assert_eq!(specific["permissionDecision"], "deny", "{self:?}");
        specific["permissionDecisionReason"].as_str().unwrap().to_owned()
    }
}

impl FakeAgent {
    pub fn start(repo: &TestRepository, name: &str) -> Self {
        Self::start_kind(repo, name, "claude")
    }

    /// The same, with the name of this agent.
    pub fn start_kind(repo: &TestRepository, name: &str, kind: &'static str) -> Self {
        Self::start_with_environment_of(&repo.shell_command(""), kind, repo.path(name))
    }

    /// Begins to ask through the hook.
    pub fn start_hook(&mut self, payload: &Value) {
        let path = self.folder.join(format!("payload-{}", self.line_count() + 1));
        fs::write(&path, payload.to_string()).unwrap();
        self.start_line(&format!("\"$TENURE\" hook {} < {}", self.kind, path.display()));
    }

    /// Asks through the hook, and waits for the answer.
    pub fn run_hook(&mut self, payload: &Value) -> CommandOutput {
        self.start_hook(payload);
        self.finish_line()
    }

    /// Waits until the hook that was begun says that it waits.
    pub fn wait_for_contention(&self) {
        let errors = self.output_file("err");
        wait_until("the hook waits", || {
            fs::read_to_string(&errors).is_ok_and(|text| text.contains("tenure: contention: "))
        });
    }

    /// Edits a file as agents do: it asks, and may; the file is changed; that is told.
    pub fn edit_file(&mut self, repo: &TestRepository, session: &str, file: &str, text: &str) {
        let output = self.run_hook(&repo.edit_payload(session, file));
        assert!(output.is_allowed(), "{output:?}");
        self.write_file(&repo.file(file), text);
        self.run_hook(&repo.post_edit_payload(session, file));
    }

    /// Writes a file by itself. Were it the test that wrote, the audit would rightly say so.
    pub fn write_file(&mut self, path: &Path, text: &str) {
        // As bash reads it, on one line.
        let quoted = |text: &str| {
            let text = text.replace('\\', r"\\").replace('\'', r"\'").replace('\n', r"\n");
            format!("$'{text}'")
        };
        let path = quoted(path.to_str().unwrap());
        let output = self.run_line(&format!("{{ printf %s {} > {path}; }}", quoted(text)));
        assert_eq!(output.code, Some(0), "{output:?}");
    }
}
