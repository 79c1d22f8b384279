//! Servers whose sessions run a pipeline, and the workers that start it.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::ops::{Deref, DerefMut};
use std::process::{ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::client::TestClient;
use crate::home::TestHome;
use crate::http::{Response, json_string};
use crate::leak_recorder;
use crate::process::{KillOnDrop, signal};
use crate::program::{own_loopback_address, tenure_command};
use crate::wait::{LIMIT, now, wait_until};

/// Marks that it has come so far, and runs until it is told to end.
pub const ENDLESS_SCRIPT: &str = "echo > begun-$TENURE_SESSION; while :; do sleep 0.05; done";

/// What [`IntentsFixture`] runs for each session.
pub const PIPELINE: &str = include_str!("pipeline.sh");

/// Under which an intent is the same session after a restart as well.
const IDEMPOTENCY_SECRET: &str = "d41f0c6a9b7e4e2c8f53a1b0c7d96e58";

/// A server in a home of its own, whose pipeline is a shell script.
pub struct PipelineFixture {
    home: TestHome,
    /// The script's arguments, in TOML.
    arguments: String,
    /// Of the server.
    environment: Vec<(&'static str, &'static str)>,
}

impl Deref for PipelineFixture {
    type Target = TestHome;

    fn deref(&self) -> &TestHome {
        &self.home
    }
}

impl DerefMut for PipelineFixture {
    fn deref_mut(&mut self) -> &mut TestHome {
        &mut self.home
    }
}

impl PipelineFixture {
    /// A server with these lines in `[intents]`, and this script. Each script first takes a lock of its tuner, which is
    /// held as long as a process lives that inherited it; a script that finds it taken writes that down.
    pub fn new(intents: &str, script: &str) -> Self {
        let lock = "exec 9> lock-$TENURE_SLOT; flock -n 9 || echo \"$TENURE_SESSION\" >> violations;";
        let arguments = "'{target}', '{slot}', '{start}', '{profile}'";
        // As if `tenure run` had been used in the same shell.
        let environment = vec![("TENURE_LEASE_TOKEN", "a secret of another lease")];
        let mut home = Self::with_script(&format!("{lock}\n{script}\n"), arguments.to_owned(), environment);
        home.set_intents(intents);
        home.serve();
        home
    }

    /// A server that leaves its sessions to a worker apart, whose leases last for two seconds.
    pub fn with_separate_worker(script: &str) -> Self {
        Self::new("worker = false\ntuners = 1\nttl_ms = 2000", script)
    }

    fn with_script(script: &str, arguments: String, environment: Vec<(&'static str, &'static str)>) -> Self {
        let home = TestHome::without_server();
        fs::write(home.path("pipeline.sh"), script).unwrap();
        Self { home, arguments, environment }
    }

    /// Writes the configuration, with these lines in `[intents]`.
    fn set_intents(&self, lines: &str) {
        let command = format!("pipeline.command = ['sh', 'pipeline.sh', {}]", self.arguments);
        self.configure(&format!("[intents]\n{lines}\n{command}\n"));
    }

    /// Starts the server, anew if it has run already.
    pub fn serve(&mut self) {
        self.serve_at(&own_loopback_address());
    }

    /// The same at this address.
    pub fn serve_at(&mut self, address: &str) {
        let mut command = tenure_command(self.folder());
        command.args(["serve", "--listen", address, "--data"]).arg(self.path("data"));
        command.env("PATH", "/usr/bin:/bin").envs(self.environment.iter().copied());
        if self.environment.iter().any(|(name, _)| *name == "XG2G_IDEM_SECRET") {
            command.env_remove("TENURE_IDEM_SECRET");
        }
        self.home.serve_with(&mut command);
    }

    /// Waits for the end of the server: the exit code, and what it said on standard error.
    pub fn wait_for_exit(&mut self) -> (Option<i32>, String) {
        let (code, _, errors) = self.take_server().wait_for_exit();
        (code, errors)
    }

    fn request(&self, line: &str, body: &str) -> Response {
        self.client().request(line, None, body).unwrap()
    }

    /// Sends an intent.
    pub fn submit_intent(&self, intent: &Value) -> Response {
        self.request("POST /api/v3/intents", &intent.to_string())
    }

    /// Wants a channel, and says which session that became.
    pub fn start_channel(&self, service: &str, profile: &str) -> String {
        let accepted =
            self.submit_intent(&json!({"serviceRef": service, "profileID": profile})).expect_status(202);
        json_string(&accepted["session_id"])
    }

    pub fn stop_intent_session(&self, session: &str) {
        assert_eq!(self.request(&format!("DELETE /api/v3/sessions/{session}"), "").status, 202);
    }

    pub fn intent_session(&self, session: &str) -> Value {
        self.request(&format!("GET /api/v3/sessions/{session}"), "").expect_status(200)
    }

    /// Waits until a session is so: `STATE`, or `STATE REASON OUTCOME`.
    pub fn wait_for_state(&self, session: &str, expected: &str) -> Value {
        let word = |view: &Value, name: &str| view[name].as_str().unwrap_or("").to_owned();
        let mut view = Value::Null;
        let is_so = |view: &Value| {
            let words = ["state", "reason", "outcome"].map(|name| word(view, name)).join(" ");
            words == expected || words.split(' ').next() == Some(expected)
        };
        wait_until(expected, || {
            view = self.intent_session(session);
            let is_elsewhere = view["state"] == "ENDED" && !is_so(&view);
            assert!(!is_elsewhere, "not {expected}: {view}; {}", self.pipeline_log(session));
            is_so(&view)
        });
        view
    }

    /// Waits until a session runs, and its script has come to [`ENDLESS_SCRIPT`].
    pub fn wait_until_running(&self, session: &str) -> Value {
        let view = self.wait_for_state(session, "RUNNING");
        wait_until("its script has begun", || self.path(&format!("begun-{session}")).exists());
        view
    }

    /// What a session's pipeline has printed.
    pub fn pipeline_log(&self, session: &str) -> String {
        self.read_or_empty(&format!("data/sessions/{session}.log"))
    }

    /// The leases that live, as `resource holder`.
    pub fn active_leases(&self) -> Vec<String> {
        let leases = self.request("GET /v1/leases", "").body;
        let shown =
            |lease: &Value| format!("{} {}", json_string(&lease["resource"]), json_string(&lease["holder"]));
        let mut leases: Vec<String> = leases["leases"].as_array().unwrap().iter().map(shown).collect();
        leases.retain(|lease| !lease.starts_with("system:"));
        leases.sort();
        leases
    }

    /// Revokes the lease on this resource.
    pub fn revoke(&self, resource: &str) {
        let leases = self.request("GET /v1/leases", "").body;
        let leases = leases["leases"].as_array().unwrap();
        let lease = leases.iter().find(|lease| lease["resource"] == resource).unwrap();
        let line = format!("POST /v1/leases/{}/revoke", lease["id"].as_str().unwrap());
        self.request(&line, &json!({"reason": "test"}).to_string()).expect_status(200);
    }

    /// `tenure worker`, as the administrator of this server.
    pub fn worker_command(&self) -> Command {
        let mut command = self.command(&["worker", "--data"]);
        command.arg(self.path("data"));
        command
    }

    /// Starts a worker, and waits until it is ready.
    pub fn start_ready_worker(&self) -> WorkerProcess {
        let mut worker = self.start_standby_worker();
        assert_eq!(worker.read_line(), "worker ready");
        worker
    }

    /// Starts a worker that is not ready yet.
    pub fn start_standby_worker(&self) -> WorkerProcess {
        WorkerProcess::start(&mut self.worker_command())
    }

    /// Fails if two pipelines had the same tuner or channel at the same time.
    pub fn assert_no_violation(&self) {
        assert_eq!(self.read_or_empty("violations"), "", "two pipelines had the same");
    }
}

/// `tenure worker`. It is killed when it is dropped.
pub struct WorkerProcess {
    child: KillOnDrop,
    output: BufReader<ChildStdout>,
}

impl WorkerProcess {
    /// Starts it.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child: KillOnDrop(child), output }
    }

    /// What it says next on standard output.
    pub fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What it says next on standard error.
    pub fn read_error_line(&mut self) -> String {
        let mut line = String::new();
        let errors = self.child.0.stderr.as_mut().unwrap();
        // Byte by byte: nothing of what follows may be lost.
        while !line.ends_with('\n') {
            let mut byte = [0];
            errors.read_exact(&mut byte).unwrap();
            line.push(char::from(byte[0]));
        }
        line
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        signal(self.child.0.id(), name);
    }

    /// Waits for its end: the exit code.
    pub fn wait_for_exit(&mut self) -> Option<i32> {
        self.child.0.wait().unwrap().code()
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.0.try_wait().unwrap().is_some()
    }

    /// Kills it as a crash would, and waits until it is gone.
    pub fn kill(&mut self) {
        self.child.0.kill().unwrap();
        self.child.0.wait().unwrap();
    }
}

/// Where the worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerMode {
    /// In the server's process.
    InProcess,
    /// A process of its own.
    SeparateProcess,
    /// There is none.
    None,
}

/// What may differ between two such servers.
#[derive(Debug, Clone, Copy)]
pub struct IntentsSetup {
    pub worker: WorkerMode,
    pub tuners: u32,
    pub ttl_ms: u64,
    /// The value of `XG2G_V3_API_LEASES`.
    pub api_leases: Option<&'static str>,
}

impl IntentsSetup {
    /// Two tuners, and leases that last longer than any test waits.
    pub fn with(worker: WorkerMode) -> Self {
        Self { worker, tuners: 2, ttl_ms: 60_000, api_leases: None }
    }

    /// The API takes leases from the start: phase 1.
    #[must_use]
    pub fn with_api_leases(mut self) -> Self {
        self.api_leases = Some("true");
        self
    }
}

/// A server and its worker, with pipelines that leave marks.
pub struct IntentsFixture {
    home: PipelineFixture,
    worker: Option<WorkerProcess>,
    setup: IntentsSetup,
}

impl Deref for IntentsFixture {
    type Target = PipelineFixture;

    fn deref(&self) -> &PipelineFixture {
        &self.home
    }
}

impl IntentsFixture {
    /// Starts a server, and its worker.
    pub fn new(setup: IntentsSetup) -> Self {
        leak_recorder::record_secret(IDEMPOTENCY_SECRET);
        let mut environment = vec![("XG2G_IDEM_SECRET", IDEMPOTENCY_SECRET)];
        environment.extend(setup.api_leases.map(|value| ("XG2G_V3_API_LEASES", value)));
        let mut home = PipelineFixture::with_script(PIPELINE, String::new(), environment);
        home.arguments = format!("'{}', '{{service}}', '{{slot}}'", home.folder().display());
        let mut started = Self { home, worker: None, setup };
        started.set_intents_setting("");
        started.start_server();
        started.start_worker();
        started
    }

    /// Writes the configuration, with one more line about intents.
    pub fn set_intents_setting(&self, line: &str) {
        let IntentsSetup { worker, tuners, ttl_ms, .. } = self.setup;
        let mut text = format!("tuners = {tuners}\nttl_ms = {ttl_ms}\nstop_grace_ms = 300\n{line}\n");
        write!(text, "worker = {}", worker == WorkerMode::InProcess).unwrap();
        self.set_intents(&text);
    }

    /// From now on the worker is elsewhere: that counts for the next start.
    pub fn set_worker_mode(&mut self, worker: WorkerMode) {
        self.setup.worker = worker;
        self.set_intents_setting("");
    }

    pub fn start_server(&mut self) {
        self.home.serve();
    }

    /// Starts the worker, if it is a process of its own, and waits until it is ready.
    pub fn start_worker(&mut self) {
        if self.has_separate_worker() {
            let mut worker = self.spawn_worker();
            assert_eq!(worker.read_line(), "worker ready", "{}", self.read_or_empty("worker.errors"));
            self.worker = Some(worker);
        }
    }

    /// As a service manager does: starts the worker if it is not there or has ended, and waits for nothing.
    pub fn ensure_worker(&mut self) {
        if self.has_separate_worker() && self.worker.as_mut().is_none_or(WorkerProcess::has_ended) {
            self.worker = Some(self.spawn_worker());
        }
    }

    fn spawn_worker(&self) -> WorkerProcess {
        let errors = File::options().create(true).append(true).open(self.path("worker.errors")).unwrap();
        let mut command = self.worker_command();
        WorkerProcess::start(command.env_remove("TENURE_URL").env_remove("TENURE_TOKEN").stderr(errors))
    }

    /// Sends the worker a signal by its name. One that has ended and was not seen to has its number still.
    pub fn signal_worker(&self, name: &str) {
        self.worker.as_ref().unwrap().signal(name);
    }

    /// `kill -9` to every watchdog of a pipeline.
    pub fn kill_watchdogs(&self) {
        let ours = format!("HOME={}", self.folder().display());
        for process in fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path()) {
            let read = |name: &str| fs::read_to_string(process.join(name)).unwrap_or_default();
            let is_watchdog = read("cmdline").starts_with("tenure\0__watchdog\0");
            if is_watchdog && read("environ").split('\0').any(|variable| variable == ours) {
                let number = process.file_name().unwrap().to_str().unwrap().to_owned();
                // It may be gone by now.
                let _ = Command::new("kill").args(["-9", &number]).stderr(Stdio::null()).status();
            }
        }
    }

    pub fn has_separate_worker(&self) -> bool {
        self.setup.worker == WorkerMode::SeparateProcess
    }

    /// `kill -9`.
    pub fn kill_server(&mut self) {
        self.home.take_server().kill();
    }

    /// `kill -9`.
    pub fn kill_worker(&mut self) {
        drop(self.worker.take().unwrap());
    }
}

/// What is sent to show this channel.
pub fn intent_body(service: &str, parameter: Option<&str>) -> String {
    let mut intent = json!({ "serviceRef": service, "profileID": "hd" });
    if let Some(parameter) = parameter {
        intent["params"] = json!({ "audio": parameter });
    }
    intent.to_string()
}

/// Wants this channel.
pub fn submit_intent(client: &mut TestClient, service: &str, parameter: Option<&str>) -> Response {
    client.request("POST /api/v3/intents", None, &intent_body(service, parameter)).unwrap()
}

/// Which session was accepted.
pub fn accepted_session(answer: &Response) -> String {
    json_string(&answer.expect_status(202)["session_id"])
}

/// The session as it is now.
pub fn get_session(client: &mut TestClient, id: &str) -> Value {
    client.request(&format!("GET /api/v3/sessions/{id}"), None, "").unwrap().expect_status(200)
}

/// The session, when it has come to one of these states.
pub fn wait_for_states(client: &mut TestClient, id: &str, states: &[&str]) -> Value {
    let end = now() + LIMIT;
    let mut session = get_session(client, id);
    while !states.iter().any(|state| session["state"] == *state) {
        assert!(now() < end, "not one of {states:?} within {LIMIT:?}: {session}");
        let line = format!("GET /api/v3/sessions/{id}?waitMs=1000&since={}", session["revision"]);
        session = client.request(&line, None, "").unwrap().body;
    }
    session
}
