//! A home directory with a server in it, and the commands that ask that server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::Value;
use tempfile::TempDir;

use crate::client::TestClient;
use crate::process::{CommandOutput, read_or_empty, signal};
use crate::program::{ServerProcess, run_command, serve_command, tenure_command};
use crate::wait::wait_until;

/// A home directory and its server.
pub struct TestHome {
    folder: TempDir,
    /// Where commands run, relative to the folder.
    pub(crate) directory: &'static str,
    server: Option<ServerProcess>,
}

impl Default for TestHome {
    fn default() -> Self {
        Self::new()
    }
}

impl TestHome {
    pub fn new() -> Self {
        let mut home = Self::without_server();
        home.serve();
        home
    }

    pub fn without_server() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), directory: "", server: None }
    }

    /// Starts the server, on what the last one left.
    pub fn serve(&mut self) {
        let mut command = serve_command(self.folder.path());
        self.serve_with(&mut command);
    }

    /// Starts the server with this command.
    pub fn serve_with(&mut self, command: &mut Command) {
        self.server = Some(ServerProcess::start(command));
    }

    pub fn server(&self) -> &ServerProcess {
        self.server.as_ref().expect("a server runs")
    }

    /// Takes the server out, to be ended.
    pub fn take_server(&mut self) -> ServerProcess {
        self.server.take().expect("a server runs")
    }

    /// The administrator's token.
    pub fn token(&self) -> String {
        fs::read_to_string(self.path("data/admin.token")).unwrap().trim_end().to_owned()
    }

    /// Writes the configuration file that every command here reads.
    pub fn configure(&self, text: &str) {
        fs::create_dir_all(self.path(".config/tenure")).unwrap();
        fs::write(self.path(".config/tenure/config.toml"), text).unwrap();
    }

    /// What is in a file here; nothing, if there is none.
    pub fn read_or_empty(&self, name: &str) -> String {
        read_or_empty(&self.path(name))
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A connection to the server.
    pub fn client(&self) -> TestClient {
        self.server().client()
    }

    /// `tenure` with these arguments, as the administrator of the server if one runs.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = tenure_command(self.folder.path());
        command.args(arguments).env("PATH", "/usr/bin:/bin").current_dir(self.path(self.directory));
        if let Some(server) = &self.server {
            command.env("TENURE_URL", format!("http://{}", server.address)).env("TENURE_TOKEN", self.token());
        }
        command
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        run_command(&mut self.command(arguments))
    }

    /// Runs it to its end, which must be exit code 0, and reads the JSON that it printed.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let done = self.run(arguments);
        assert_eq!(done.code, Some(0), "{done:?}");
        done.json()
    }

    /// `tenure run --on RESOURCE ARGUMENTS… -- sh -c SCRIPT`.
    pub fn run_command_under_lease(&self, resource: &str, arguments: &[&str], script: &str) -> Command {
        let mut all = vec!["run", "--on", resource];
        all.extend(arguments);
        all.extend(["--", "sh", "-c", script]);
        self.command(&all)
    }

    /// Starts such a command, and waits until its script has come to `@begun`, or has begun at all.
    pub fn start_under_lease(&self, resource: &str, arguments: &[&str], script: &str) -> RunningCommand {
        let marker = self.path("begun");
        let says_when =
            if script.contains("@begun") { script.to_owned() } else { format!("@begun; {script}") };
        let script = says_when.replace("@begun", "echo $$ > begun");
        let started =
            RunningCommand(Some(self.run_command_under_lease(resource, arguments, &script).spawn().unwrap()));
        wait_until("the command begins", || {
            std::fs::read_to_string(&marker).is_ok_and(|text| text.ends_with('\n'))
        });
        std::fs::remove_file(marker).unwrap();
        started
    }
}

/// A command that runs. It is killed when it is dropped.
pub struct RunningCommand(Option<Child>);

impl RunningCommand {
    pub fn process_id(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        signal(self.process_id(), name);
    }

    /// Waits for the end of this process alone; another may still hold what it had open.
    pub fn wait(mut self) -> Option<i32> {
        self.0.take().unwrap().wait().unwrap().code()
    }

    /// Waits for its end, and for that of every process that could still write to its output.
    pub fn end(mut self) -> CommandOutput {
        CommandOutput::from_output(self.0.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
