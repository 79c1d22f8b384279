//! A repository, a server on its socket, and agents that ask it, each in a process of its own.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tenure_server::{FileSettings, SocketPlace};

use crate::server::{Answer, Running, parse, start_in};

/// The folder of a request that this very program is to send.
const REQUEST: &str = "TENURE_TEST_REQUEST";
/// It is sent by a child, after this process is gone.
const LATE: &str = "TENURE_TEST_LATE";

pub struct Stage {
    pub server: Running,
}

impl Stage {
    /// A repository with `a` and `b`. The one retry is due at once.
    pub fn new() -> Self {
        Self::with(FileSettings { retry_ms: 1, ..FileSettings::default() })
    }

    /// The same with these settings.
    pub fn with(files: FileSettings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runtime/tenure.sock");
        let repository = folder.path().join("repository");
        fs::create_dir(&repository).unwrap();
        let git = Command::new("git").args(["init", "--quiet"]).current_dir(&repository).status().unwrap();
        assert!(git.success());
        for name in ["a", "b"] {
            fs::write(repository.join(name), name).unwrap();
        }
        let server = start_in(folder, |settings| {
            settings.socket = Some(SocketPlace { path, users: Vec::new(), is_chosen: true });
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
    pub fn person(&self, line: &str, body: &Value) -> Answer {
        self.person_with(line, "", body)
    }

    pub fn person_with(&self, line: &str, headers: &str, body: &Value) -> Answer {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        send(&mut stream, &request(line, headers, body))
    }

    /// The paths that somebody has, and which session it is.
    pub fn held(&self) -> Vec<(String, String)> {
        let files = self.person("GET /v1/files", &json!({})).json();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let files = files["files"].as_array().unwrap().iter();
        files.map(|file| (text(&file["path"]), text(&file["owner"]["session"]))).collect()
    }
}

fn request(line: &str, headers: &str, body: &Value) -> String {
    let body = if line.starts_with("GET") { String::new() } else { body.to_string() };
    format!(
        "{line} HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn send(stream: &mut UnixStream, request: &str) -> Answer {
    parse(&exchange(stream, request))
}

fn exchange(stream: &mut UnixStream, request: &str) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A process called `claude` that has others ask for it, as hooks do.
pub struct Agent {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: PathBuf,
    socket: PathBuf,
    root: PathBuf,
    session: String,
}

impl Agent {
    pub fn start(stage: &Stage, session: &str) -> Self {
        let folder = stage.server.folder.path().join(session);
        fs::create_dir(&folder).unwrap();
        let program = folder.join("claude");
        fs::copy("/bin/bash", &program).unwrap();
        let mut process = Command::new(&program)
            .args(["-c", r#"while read -r line; do eval "$line"; echo done; done"#])
            .env("PROGRAM", std::env::current_exe().unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let (output, session) = (BufReader::new(output), session.to_owned());
        Self { process, input, output, folder, socket: stage.socket(), root: stage.file(""), session }
    }

    /// Runs a line of shell in the agent's own process.
    pub fn run(&mut self, line: &str) {
        writeln!(self.input, "{line}").unwrap();
        let mut said = String::new();
        self.output.read_line(&mut said).unwrap();
        assert_eq!(said, "done\n");
    }

    fn ask_as(&mut self, role: &str, line: &str, body: &Value) -> Answer {
        fs::write(self.folder.join("request"), request(line, "", body)).unwrap();
        fs::write(self.folder.join("socket"), self.socket.to_str().unwrap()).unwrap();
        let _ = fs::remove_file(self.folder.join("answer"));
        let folder = self.folder.display();
        let test = "--exact files::stage::a_request_of_an_agent";
        self.run(&format!("{role} {REQUEST}={folder} \"$PROGRAM\" {test} > /dev/null 2>&1"));
        let answer = self.folder.join("answer");
        until("an answer", || answer.exists());
        parse(&fs::read_to_string(answer).unwrap())
    }

    pub fn ask(&mut self, line: &str, body: &Value) -> Answer {
        self.ask_as("", line, body)
    }

    /// The same, by somebody who is gone when the question comes.
    pub fn ask_and_be_gone(&mut self, line: &str, body: &Value) -> Answer {
        self.ask_as(&format!("{LATE}=yes"), line, body)
    }

    fn speaker(&self, subagent: Option<&str>) -> Value {
        let mut speaker = json!({"agent": "claude", "session": self.session});
        if let Some(subagent) = subagent {
            speaker["subagent"] = json!(subagent);
        }
        speaker
    }

    /// Wants to change files of the repository: the verdict.
    pub fn acquire(&mut self, subagent: Option<&str>, paths: &[&str]) -> Value {
        let body = json!({"speaker": self.speaker(subagent), "cwd": self.root, "paths": paths});
        let answer = self.ask("POST /v1/files/acquire", &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["verdict"].clone()
    }

    pub fn tell(&mut self, subagent: Option<&str>, event: &str, paths: &[&str]) -> Answer {
        let speaker = self.speaker(subagent);
        let body = json!({"speaker": speaker, "event": event, "cwd": self.root, "paths": paths});
        self.ask("POST /v1/files/events", &body)
    }

    /// Says that this was committed, and is clean: what was let go of.
    pub fn commit(&mut self, paths: &[&str]) -> Value {
        let answer = self.ask("POST /v1/files/commit", &json!({"root": self.root, "paths": paths}));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["released"].clone()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Not a test: what [`Agent`] runs, so that the question is asked by a process that the agent started.
#[test]
fn a_request_of_an_agent() {
    let Some(folder) = std::env::var_os(REQUEST).map(PathBuf::from) else { return };
    match std::env::var(LATE).as_deref() {
        Ok("yes") => leave_it_to_a_child(&folder),
        Ok(parent) => {
            let parent = PathBuf::from(format!("/proc/{parent}"));
            until("the end of who connected", || !parent.exists());
            let stream = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
            answer_into(&folder, UnixStream::from(stream));
        }
        Err(_) => answer_into(&folder, connect(&folder)),
    }
}

fn connect(folder: &Path) -> UnixStream {
    UnixStream::connect(fs::read_to_string(folder.join("socket")).unwrap()).unwrap()
}

fn answer_into(folder: &Path, mut stream: UnixStream) {
    let answer = exchange(&mut stream, &fs::read_to_string(folder.join("request")).unwrap());
    fs::write(folder.join("answer.new"), answer).unwrap();
    fs::rename(folder.join("answer.new"), folder.join("answer")).unwrap();
}

#[expect(clippy::zombie_processes, reason = "it outlives this process, and ends by itself")]
fn leave_it_to_a_child(folder: &Path) {
    let stream = OwnedFd::from(connect(folder));
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new(program);
    child.args(["--exact", "files::stage::a_request_of_an_agent"]);
    child.env(LATE, std::process::id().to_string()).stdin(stream).spawn().unwrap();
}

/// Waits until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_500 {
        if is_so() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    panic!("{what}: not within half a minute");
}
