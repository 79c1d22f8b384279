//! The files API over the local socket, with requests from processes of their own.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tenure_server::{FileSettings, LocalSocketSettings};

use crate::http::{self, Response, json_string};
use crate::process::FakeAgent;
use crate::server::TestServer;
use crate::wait::{LIMIT, wait_until};

/// The folder of the request that [`send_agent_request`] is to send.
const REQUEST_VARIABLE: &str = "TENURE_TEST_REQUEST";
/// The request is sent by a child, after this process is gone.
const LATE_VARIABLE: &str = "TENURE_TEST_LATE";
/// The test of the same name calls [`send_agent_request`], and nothing else.
const SENDER_TEST: &str = "files::a_request_of_an_agent";

/// A repository, and a server that is asked for its files over the local socket.
pub struct FilesApiServer {
    pub server: TestServer,
}

impl FilesApiServer {
    /// A repository with `a` and `b`. The one retry is due at once.
    pub fn start() -> Self {
        Self::start_with(FileSettings { retry_ms: 1, ..FileSettings::default() })
    }

    /// The same with these settings.
    pub fn start_with(files: FileSettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runtime/tenure.sock");
        let repository = folder.path().join("repository");
        fs::create_dir(&repository).unwrap();
        let git = Command::new("git").args(["init", "--quiet"]).current_dir(&repository).status().unwrap();
        assert!(git.success());
        for name in ["a", "b"] {
            fs::write(repository.join(name), name).unwrap();
        }
        let server = TestServer::start_in(folder, |settings| {
            settings.socket = Some(LocalSocketSettings { path, users: Vec::new(), is_explicit: true });
            settings.files = files;
        });
        Self { server: server.unwrap() }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.server.folder.path().join("repository").join(name)
    }

    pub fn socket(&self) -> PathBuf {
        self.server.folder.path().join("runtime/tenure.sock")
    }

    /// What this process asks, which no agent started.
    pub fn request_as_human(&self, line: &str, body: &Value) -> Response {
        self.request_as_human_with(line, &[], body)
    }

    pub fn request_as_human_with(&self, line: &str, headers: &[&str], body: &Value) -> Response {
        http::request_on_socket(&self.socket(), line, headers, &body_of(line, body))
    }

    /// The paths that are held, and the session that holds each.
    pub fn held_files(&self) -> Vec<(String, String)> {
        let files = self.request_as_human("GET /v1/files", &json!({})).json();
        let files = files["files"].as_array().unwrap().iter();
        files.map(|file| (json_string(&file["path"]), json_string(&file["owner"]["session"]))).collect()
    }
}

fn body_of(line: &str, body: &Value) -> String {
    if line.starts_with("GET") { String::new() } else { body.to_string() }
}

/// An agent whose children send its requests, as hooks do.
pub struct FileAgent {
    agent: FakeAgent,
    socket: PathBuf,
    root: PathBuf,
    session: String,
}

impl FileAgent {
    pub fn start(server: &FilesApiServer, session: &str) -> Self {
        let mut like = Command::new("");
        like.envs(std::env::vars_os()).env("PROGRAM", std::env::current_exe().unwrap());
        let agent =
            FakeAgent::start_with_environment_of(&like, "claude", server.server.folder.path().join(session));
        Self { agent, socket: server.socket(), root: server.file(""), session: session.to_owned() }
    }

    /// Runs a line of shell in the agent's own process.
    pub fn run_shell_line(&mut self, line: &str) {
        self.agent.run_line_unredirected(line);
    }

    fn request_in_role(&mut self, role: &str, line: &str, body: &Value) -> Response {
        let folder = &self.agent.folder;
        fs::write(folder.join("request"), http::format_socket_request(line, &[], &body_of(line, body)))
            .unwrap();
        fs::write(folder.join("socket"), self.socket.to_str().unwrap()).unwrap();
        let answer = folder.join("answer");
        let _ = fs::remove_file(&answer);
        let folder = folder.display();
        self.run_shell_line(&format!(
            "{role} {REQUEST_VARIABLE}={folder} \"$PROGRAM\" --exact {SENDER_TEST} > /dev/null 2>&1"
        ));
        wait_until("a response", || answer.exists());
        http::parse(&fs::read_to_string(answer).unwrap())
    }

    pub fn request(&mut self, line: &str, body: &Value) -> Response {
        self.request_in_role("", line, body)
    }

    /// The same, by a process that is gone when the request arrives.
    pub fn request_and_exit(&mut self, line: &str, body: &Value) -> Response {
        self.request_in_role(&format!("{LATE_VARIABLE}=yes"), line, body)
    }

    fn caller(&self, subagent: Option<&str>) -> Value {
        let mut caller = json!({"agent": "claude", "session": self.session});
        if let Some(subagent) = subagent {
            caller["subagent"] = json!(subagent);
        }
        caller
    }

    /// Wants to change files of the repository: the verdict.
    pub fn acquire(&mut self, subagent: Option<&str>, paths: &[&str]) -> Value {
        let body = json!({"speaker": self.caller(subagent), "cwd": self.root, "paths": paths});
        self.request("POST /v1/files/acquire", &body).expect_status(200)["verdict"].clone()
    }

    pub fn report_event(&mut self, subagent: Option<&str>, event: &str, paths: &[&str]) -> Response {
        let caller = self.caller(subagent);
        let body = json!({"speaker": caller, "event": event, "cwd": self.root, "paths": paths});
        self.request("POST /v1/files/events", &body)
    }

    /// Reports that this was committed and is clean: the files that were released.
    pub fn commit(&mut self, paths: &[&str]) -> Value {
        let body = json!({"root": self.root, "paths": paths});
        self.request("POST /v1/files/commit", &body).expect_status(200)["released"].clone()
    }
}

/// Sends the request of a [`FileAgent`], from a process that the agent started. Elsewhere it does nothing.
pub fn send_agent_request() {
    let Some(folder) = std::env::var_os(REQUEST_VARIABLE).map(PathBuf::from) else { return };
    let connected = || UnixStream::connect(fs::read_to_string(folder.join("socket")).unwrap()).unwrap();
    match std::env::var(LATE_VARIABLE).as_deref() {
        Ok("yes") => delegate_to_child(connected()),
        Ok(parent) => {
            let parent = PathBuf::from(format!("/proc/{parent}"));
            wait_until("the end of the process that connected", || !parent.exists());
            let stream = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
            exchange(&folder, UnixStream::from(stream));
        }
        Err(_) => exchange(&folder, connected()),
    }
}

fn exchange(folder: &Path, mut stream: UnixStream) {
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(&fs::read(folder.join("request")).unwrap()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    fs::write(folder.join("answer.new"), answer).unwrap();
    fs::rename(folder.join("answer.new"), folder.join("answer")).unwrap();
}

#[expect(clippy::zombie_processes, reason = "it outlives this process, and ends by itself")]
fn delegate_to_child(stream: UnixStream) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", SENDER_TEST]).env(LATE_VARIABLE, std::process::id().to_string());
    child.stdin(OwnedFd::from(stream)).spawn().unwrap();
}
