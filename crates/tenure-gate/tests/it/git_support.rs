//! Real repositories in folders of their own, with nobody's settings.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A repository with a working tree.
pub struct Repository {
    folder: TempDir,
    pub root: PathBuf,
}

impl Repository {
    pub fn new() -> Self {
        Self::with(&["init", "--quiet", "--initial-branch=main"])
    }

    /// With another command in place of `git init`; it runs in the folder that becomes the root.
    pub fn with(init: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("repo");
        fs::create_dir(&root).unwrap();
        let repository = Self { folder, root };
        repository.git(init);
        repository
    }

    /// A place beside the repository.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub fn write(&self, path: impl AsRef<Path>, content: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// What git says. It must succeed.
    pub fn git<A: AsRef<OsStr>>(&self, arguments: &[A]) -> String {
        git_in(&self.root, arguments)
    }

    /// Writes these files, commits them, and says the id.
    pub fn commit(&self, files: &[(&str, &str)]) -> String {
        for (path, content) in files {
            self.write(path, content);
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "work"]);
        self.git(&["rev-parse", "HEAD"])
    }
}

/// Runs git as an agent would, without anybody's settings.
pub fn command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"GIT_") {
            command.env_remove(name);
        }
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
    for (name, value) in [("NAME", "An Agent"), ("EMAIL", "agent@example.com")] {
        command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
    }
    command.args(["-c", "protocol.file.allow=always", "-c", "commit.gpgsign=false"]);
    command
}

/// What git says in this folder. It must succeed.
pub fn git_in<A: AsRef<OsStr>>(folder: &Path, arguments: &[A]) -> String {
    let output = command(folder).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {said}", arguments.iter().map(A::as_ref).collect::<Vec<_>>());
    String::from_utf8(output.stdout).unwrap().trim_end_matches('\n').to_owned()
}

/// Paths, in order.
pub fn paths<const N: usize>(names: [&str; N]) -> Vec<PathBuf> {
    names.map(PathBuf::from).into()
}
