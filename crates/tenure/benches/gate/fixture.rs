//! A repository to measure in, with a server and a home of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The program that is measured.
const TENURE: &str = env!("CARGO_BIN_EXE_tenure");

/// A repository with many files, and a small crate in it.
pub struct Fixture {
    folder: TempDir,
}

impl Fixture {
    /// With so many files.
    pub fn make(files: usize) -> Result<Self, String> {
        let world = Self { folder: tempfile::tempdir().map_err(|error| error.to_string())? };
        let failed = |error: std::io::Error| error.to_string();
        for number in 0..files {
            let folder = world.repository().join(format!("src{:02}", number % 50));
            fs::create_dir_all(&folder).map_err(failed)?;
            let text = format!("line of file {number}\n").repeat(20);
            fs::write(folder.join(format!("file{number}.txt")), text).map_err(failed)?;
        }
        fs::create_dir_all(world.repository().join("small/src")).map_err(failed)?;
        let manifest = "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
        fs::write(world.repository().join("small/Cargo.toml"), manifest).map_err(failed)?;
        fs::write(world.repository().join("small/src/main.rs"), "fn main() { println!(\"{}\", 1 + 1); }\n")
            .map_err(failed)?;
        fs::write(world.repository().join(".gitignore"), "target/\n").map_err(failed)?;
        world.shell(
            "git init -q . && git add . && git -c user.name=b -c user.email=b@example commit -qm begin && cd small && \
             cargo generate-lockfile --offline -q && cargo build --offline -q && cd .. && git add . && \
             git -c user.name=b -c user.email=b@example commit -qm lock",
        )?;
        // The server is started before anything is measured.
        world.run_guarded(Command::new("true"))?;
        Ok(world)
    }

    /// The top of the repository.
    pub fn repository(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    /// Where results go.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs this as it is.
    pub fn run_unguarded(&self, command: Command) -> Result<String, String> {
        self.run(command)
    }

    /// Runs this under a guard.
    pub fn run_guarded(&self, command: Command) -> Result<String, String> {
        let mut guarded = Command::new(TENURE);
        guarded.args(["guard", "--"]).arg(command.get_program()).args(command.get_args());
        self.run(guarded)
    }

    fn shell(&self, line: &str) -> Result<String, String> {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        self.run(command)
    }

    fn run(&self, mut command: Command) -> Result<String, String> {
        let home: &Path = self.folder.path();
        fs::create_dir_all(self.repository()).map_err(|error| error.to_string())?;
        // Rust's own tools are found where they are; everything of ours is the benchmark's own.
        command.env("XDG_RUNTIME_DIR", home).env("XDG_STATE_HOME", home.join("state"));
        command.env("XDG_CONFIG_HOME", home.join("config")).env_remove("TENURE_SESSION");
        command.env_remove("TENURE_DATA").env_remove("TENURE_CONFIG").current_dir(self.repository());
        let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(format!("{command:?} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let mut stop = Command::new(TENURE);
        stop.arg("stop");
        let _ = self.run(stop);
    }
}
