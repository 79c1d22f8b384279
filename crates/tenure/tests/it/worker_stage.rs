//! A server with a pipeline that is a shell script, and workers beside it.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Answer, Client, wait_until};
use crate::commands::signal;
use crate::program::{Served, tenure};

/// Says that it has come so far, and runs until it is told to end.
pub const FOREVER: &str = "echo > begun-$TENURE_SESSION; while :; do sleep 0.05; done";

/// A server in a folder of its own.
pub struct Stage {
    folder: TempDir,
    served: Option<Served>,
}

impl Stage {
    /// A server with these lines in `[intents]`, and this script as the pipeline. Each script first takes a lock of its
    /// tuner, which it holds as long as it or anybody whom it started lives; who finds it taken says so.
    pub fn new(intents: &str, script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let lock = "exec 9> lock-$TENURE_SLOT; flock -n 9 || echo \"$TENURE_SESSION\" >> violations;";
        std::fs::write(folder.path().join("pipeline.sh"), format!("{lock}\n{script}\n")).unwrap();
        let command =
            "pipeline.command = ['sh', 'pipeline.sh', '{target}', '{slot}', '{start}', '{profile}']";
        let text = format!("[intents]\n{intents}\n{command}\n");
        let place = folder.path().join(".config/tenure");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("config.toml"), text).unwrap();
        let mut stage = Self { folder, served: None };
        stage.serve();
        stage
    }

    /// A server that leaves its sessions to others, whose leases last for two seconds.
    pub fn apart(script: &str) -> Self {
        Self::new("worker = false\ntuners = 1\nttl_ms = 2000", script)
    }

    /// Starts the server, anew if it has run already.
    pub fn serve(&mut self) {
        self.serve_at("127.0.0.1:0");
    }

    /// The same at this address.
    pub fn serve_at(&mut self, address: &str) {
        let mut command = tenure(self.folder.path());
        command.args(["serve", "--listen", address, "--data"]).arg(self.path("data"));
        command.env("PATH", "/usr/bin:/bin");
        // As if somebody had used it from the same shell.
        command.env("TENURE_LEASE_TOKEN", "a secret of another lease");
        self.served = Some(Served::start(&mut command));
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        crate::commands::text_of(&self.path(name))
    }

    /// The server's process.
    pub fn served(&self) -> &Served {
        self.served.as_ref().unwrap()
    }

    /// Waits for the end of the server: the exit code, and what it said on standard error.
    pub fn end(&mut self) -> (Option<i32>, String) {
        let (code, _, errors) = self.served.take().unwrap().end();
        (code, errors)
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.served().address, &self.path("data"))
    }

    fn ask(&self, line: &str, body: &str) -> Answer {
        self.client().ask(line, None, body).unwrap()
    }

    /// Sends an intent.
    pub fn send(&self, intent: &Value) -> Answer {
        self.ask("POST /api/v3/intents", &intent.to_string())
    }

    /// Wants a channel, and says which session that became.
    pub fn watch(&self, service: &str, profile: &str) -> String {
        let answer = self.send(&json!({"serviceRef": service, "profileID": profile}));
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.body["session_id"].as_str().unwrap().to_owned()
    }

    pub fn stop(&self, session: &str) {
        assert_eq!(self.ask(&format!("DELETE /api/v3/sessions/{session}"), "").status, 202);
    }

    pub fn session(&self, session: &str) -> Value {
        let mut answer = self.ask(&format!("GET /api/v3/sessions/{session}"), "");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body.take()
    }

    /// Waits until a session is so: `STATE`, or `STATE REASON OUTCOME`.
    pub fn until(&self, session: &str, wanted: &str) -> Value {
        let word = |view: &Value, name: &str| view[name].as_str().unwrap_or("").to_owned();
        let mut view = Value::Null;
        let is_so = |view: &Value| {
            let words = ["state", "reason", "outcome"].map(|name| word(view, name)).join(" ");
            words == wanted || words.split(' ').next() == Some(wanted)
        };
        wait_until(wanted, || {
            view = self.session(session);
            let is_elsewhere = view["state"] == "ENDED" && !is_so(&view);
            assert!(!is_elsewhere, "not {wanted}: {view}; {}", self.log(session));
            is_so(&view)
        });
        view
    }

    /// Waits until a session runs, and its script has come to [`FOREVER`].
    pub fn runs(&self, session: &str) -> Value {
        let view = self.until(session, "RUNNING");
        wait_until("its script has begun", || self.path(&format!("begun-{session}")).exists());
        view
    }

    /// What a session's pipeline has printed.
    pub fn log(&self, session: &str) -> String {
        self.text(&format!("data/sessions/{session}.log"))
    }

    /// The leases that live, as `resource holder`.
    pub fn leases(&self) -> Vec<String> {
        let answer = self.ask("GET /v1/leases", "");
        let text = |lease: &Value, name: &str| lease[name].as_str().unwrap_or("?").to_owned();
        let leases = answer.body["leases"].as_array().unwrap().iter();
        let mut leases: Vec<String> =
            leases.map(|lease| format!("{} {}", text(lease, "resource"), text(lease, "holder"))).collect();
        leases.retain(|lease| !lease.starts_with("system:"));
        leases.sort();
        leases
    }

    /// Takes a lease away from whoever has it.
    pub fn revoke(&self, resource: &str) {
        let leases = self.ask("GET /v1/leases", "").body;
        let leases = leases["leases"].as_array().unwrap();
        let lease = leases.iter().find(|lease| lease["resource"] == resource).unwrap();
        let line = format!("POST /v1/leases/{}/revoke", lease["id"].as_str().unwrap());
        let revoked = self.ask(&line, &json!({"reason": "test"}).to_string());
        assert_eq!(revoked.status, 200, "{revoked:?}");
    }

    /// `tenure` with these arguments, as the administrator of this server.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let token = std::fs::read_to_string(self.path("data/admin.token")).unwrap();
        let mut command = tenure(self.folder.path());
        command.args(arguments).arg("--data").arg(self.path("data")).env("PATH", "/usr/bin:/bin");
        command.env("TENURE_URL", format!("http://{}", self.served().address));
        command.env("TENURE_TOKEN", token.trim_end());
        command
    }

    /// Starts a worker, and waits until it is ready.
    pub fn worker(&self) -> Worker {
        let mut worker = self.worker_that_waits();
        assert_eq!(worker.line(), "worker ready");
        worker
    }

    /// Starts a worker that is not ready yet.
    pub fn worker_that_waits(&self) -> Worker {
        Worker::start(&mut self.command(&["worker"]))
    }

    /// No two pipelines had one tuner at the same time.
    pub fn has_no_violation(&self) {
        assert_eq!(self.text("violations"), "");
    }
}

/// `tenure worker`. It is killed when it is dropped.
pub struct Worker {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts it.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// What it says next on standard output.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What it says next on standard error.
    pub fn complaint(&mut self) -> String {
        let mut line = String::new();
        let errors = self.child.stderr.as_mut().unwrap();
        // Byte by byte: nothing of what follows may be lost.
        while !line.ends_with('\n') {
            let mut byte = [0];
            std::io::Read::read_exact(errors, &mut byte).unwrap();
            line.push(char::from(byte[0]));
        }
        line
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Waits for its end: the exit code.
    pub fn end(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Kills it as a crash would, and waits until it is gone.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
