//! A server with its worker, in one process or in two, and pipelines that leave marks.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::client::Client;
use crate::intents_ledger::Story;
use crate::program::{Served, serve, tenure};

/// A channel.
pub const CHANNEL: &str = "1:0:19:283D:3FB:1:C00000:0:0:0:";

/// Another one.
pub const OTHER: &str = "1:0:19:2B66:3F3:1:C00000:0:0:0:";

/// Under which the same wish is the same session, also after a restart.
const SECRET: &str = "d41f0c6a9b7e4e2c8f53a1b0c7d96e58";

/// What is run for each session.
pub const PIPELINE: &str = include_str!("intents_pipeline.sh");

/// Where the worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worker {
    /// In the server's process.
    Inside,
    /// A process of its own.
    Apart,
    /// There is none.
    Nowhere,
}

/// What may differ between two stages.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    pub worker: Worker,
    pub tuners: u32,
    pub ttl_ms: u64,
    /// The value of `XG2G_V3_API_LEASES`.
    pub api_leases: Option<&'static str>,
}

impl Setup {
    /// Two tuners, and leases that last longer than any test waits.
    pub fn with(worker: Worker) -> Self {
        Self { worker, tuners: 2, ttl_ms: 60_000, api_leases: None }
    }

    /// The API takes leases from the start: phase 1.
    #[must_use]
    pub fn in_phase_one(mut self) -> Self {
        self.api_leases = Some("true");
        self
    }
}

/// A server, its worker, and the folder in which their traces are.
pub struct Stage {
    served: Option<Served>,
    worker: Option<Apart>,
    setup: Setup,
    folder: TempDir,
}

/// `tenure worker`. It is killed when it is dropped.
struct Apart(Child);

impl Stage {
    /// Starts a server, and its worker.
    pub fn new(setup: Setup) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("pipeline.sh"), PIPELINE).unwrap();
        let mut stage = Self { served: None, worker: None, setup, folder };
        stage.configure("");
        stage.start_server();
        stage.start_worker();
        stage
    }

    /// Writes the configuration, with one more line about intents.
    pub fn configure(&self, line: &str) {
        let Setup { worker, tuners, ttl_ms, .. } = self.setup;
        let folder = self.folder.path().display();
        let mut text = format!("[intents]\ntuners = {tuners}\nttl_ms = {ttl_ms}\nstop_grace_ms = 300\n");
        writeln!(text, "worker = {}", worker == Worker::Inside).unwrap();
        writeln!(text, "{line}\n[intents.pipeline]").unwrap();
        writeln!(text, r#"command = ["sh", "pipeline.sh", "{folder}", "{{service}}", "{{slot}}"]"#).unwrap();
        fs::write(self.path("config.toml"), text).unwrap();
    }

    /// From now on the worker is elsewhere: that counts for the next start.
    pub fn put_worker(&mut self, worker: Worker) {
        self.setup.worker = worker;
        self.configure("");
    }

    pub fn start_server(&mut self) {
        let mut command = serve(self.folder.path());
        self.equip(&mut command);
        if let Some(value) = self.setup.api_leases {
            command.env("XG2G_V3_API_LEASES", value);
        }
        self.served = Some(Served::start(&mut command));
    }

    /// Starts the worker, if it is a process of its own, and waits until it is ready.
    pub fn start_worker(&mut self) {
        if self.has_worker_apart() {
            self.worker = Some(self.spawn_worker());
            let output = self.worker.as_mut().unwrap().0.stdout.take().unwrap();
            let mut line = String::new();
            BufReader::new(output).read_line(&mut line).unwrap();
            assert!(line.starts_with("worker ready"), "{line:?}: {}", self.read("worker.errors"));
        }
    }

    /// As a service manager does: starts the worker if it is not there or has ended, and waits for nothing.
    pub fn see_to_worker(&mut self) {
        let has_ended = |worker: &mut Apart| worker.0.try_wait().unwrap().is_some();
        if self.has_worker_apart() && self.worker.as_mut().is_none_or(has_ended) {
            self.worker = Some(self.spawn_worker());
        }
    }

    /// Sends the worker a signal by its name. One that has ended and was not seen to has its number still.
    pub fn signal_worker(&self, name: &str) {
        crate::commands::signal(self.worker.as_ref().unwrap().0.id(), name);
    }

    /// `kill -9` to every watchdog of a pipeline.
    pub fn kill_watchdogs(&self) {
        let ours = format!("HOME={}", self.folder.path().display());
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

    pub fn has_worker_apart(&self) -> bool {
        self.setup.worker == Worker::Apart
    }

    fn spawn_worker(&self) -> Apart {
        let mut command = tenure(self.folder.path());
        command.arg("worker");
        self.equip(&mut command);
        let errors = File::options().create(true).append(true).open(self.path("worker.errors")).unwrap();
        Apart(command.stderr(errors).spawn().unwrap())
    }

    fn equip(&self, command: &mut Command) {
        command.arg("--config").arg(self.path("config.toml")).env("PATH", "/usr/bin:/bin");
        crate::traces::secret(SECRET);
        command.env_remove("TENURE_IDEM_SECRET").env("XG2G_IDEM_SECRET", SECRET);
    }

    /// `kill -9`.
    pub fn kill_server(&mut self) {
        let served = self.served.take().unwrap();
        served.signal("KILL");
        assert_eq!(served.end().0, None, "it was killed");
    }

    /// `kill -9`.
    pub fn kill_worker(&mut self) {
        drop(self.worker.take().unwrap());
    }

    pub fn served(&self) -> &Served {
        self.served.as_ref().unwrap()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a file in the folder says; nothing, if there is none.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// A connection to the server.
    pub fn client(&self) -> Client {
        Client::connect(&self.served().address, &self.data())
    }

    /// `tenure` with these arguments, to its end: its exit code, and what it printed.
    pub fn tenure(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = tenure(self.folder.path()).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    }

    /// Everything that the ledger says.
    pub fn story(&self) -> Story {
        Story::read(self.folder.path(), &self.data())
    }

    /// Fails if a pipeline was not alone.
    pub fn check_violations(&self) {
        assert_eq!(self.read("violations"), "", "two pipelines had the same");
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
