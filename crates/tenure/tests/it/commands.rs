//! Commands that ask a server, and a server that answers them.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::client::{Client, wait_until};
use crate::program::{Served, serve, tenure};

/// A server in a folder of its own.
pub struct World {
    folder: TempDir,
    served: Served,
    token: String,
}

/// What a command did.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub output: String,
    pub errors: String,
}

impl World {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let served = Served::start(&mut serve(folder.path()));
        let token =
            std::fs::read_to_string(folder.path().join("data/admin.token")).unwrap().trim_end().to_owned();
        Self { folder, served, token }
    }

    /// A file in the folder in which commands run.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What the server says to others.
    pub fn client(&self) -> Client {
        Client::connect(&self.served.address, &self.path("data"))
    }

    /// `tenure` with these arguments, as the administrator of this server.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = tenure(self.folder.path());
        command.args(arguments).env("PATH", "/usr/bin:/bin");
        command.env("TENURE_URL", format!("http://{}", self.served.address)).env("TENURE_TOKEN", &self.token);
        command
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &[&str]) -> Done {
        Done::of(self.command(arguments).output().unwrap())
    }

    /// Runs it to its end, which must be a good one, and reads the JSON that it printed.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let done = self.run(arguments);
        assert_eq!(done.code, Some(0), "{done:?}");
        serde_json::from_str(&done.output).unwrap()
    }

    /// `tenure run --on RESOURCE ARGUMENTS… -- sh -c SCRIPT`.
    pub fn under(&self, resource: &str, arguments: &[&str], script: &str) -> Command {
        let mut all = vec!["run", "--on", resource];
        all.extend(arguments);
        all.extend(["--", "sh", "-c", script]);
        self.command(&all)
    }

    /// Starts such a command, and waits until its script has come to `@begun`, or has begun at all.
    pub fn begin(&self, resource: &str, arguments: &[&str], script: &str) -> Started {
        let begun = self.path("begun");
        let says_when =
            if script.contains("@begun") { script.to_owned() } else { format!("@begun; {script}") };
        let script = says_when.replace("@begun", "echo $$ > begun");
        let started = Started(Some(self.under(resource, arguments, &script).spawn().unwrap()));
        wait_until("the command begins", || {
            std::fs::read_to_string(&begun).is_ok_and(|text| text.ends_with('\n'))
        });
        std::fs::remove_file(begun).unwrap();
        started
    }
}

/// A command that runs. It is killed when it is dropped.
pub struct Started(Option<Child>);

impl Started {
    pub fn process(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        signal(self.process(), name);
    }

    /// Waits for the end of this process alone, whoever else may still hold what it had open.
    pub fn wait(mut self) -> Option<i32> {
        self.0.take().unwrap().wait().unwrap().code()
    }

    /// Waits for its end, and for that of everybody who could still write.
    pub fn end(mut self) -> Done {
        Done::of(self.0.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Done {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), output: text(output.stdout), errors: text(output.stderr) }
    }
}

/// Sends a signal by its name.
pub fn signal(process: u32, name: &str) {
    let kill = format!("kill -{name} {process}");
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

/// Whether nobody holds the lock on this file. `flock` holds it for as long as anybody lives who inherited it.
pub fn is_unlocked(path: &Path) -> bool {
    let status =
        Command::new("flock").arg("-n").arg(path).arg("true").stderr(Stdio::null()).status().unwrap();
    status.success()
}

/// Everything that a file holds; nothing, if there is none.
pub fn text_of(path: &Path) -> String {
    let mut text = String::new();
    if let Ok(mut file) = std::fs::File::open(path) {
        file.read_to_string(&mut text).unwrap();
    }
    text
}
