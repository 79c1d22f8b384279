//! Real repositories in folders of their own, with nobody's settings.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
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
        Self::with_init(&["init", "--quiet", "--initial-branch=main"])
    }

    /// With another command in place of `git init`; it runs in the folder that becomes the root.
    pub fn with_init(init: &[&str]) -> Self {
        // In memory where there is such a place: git syncs every branch.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let root = folder.path().canonicalize().unwrap().join("repo");
        fs::create_dir(&root).unwrap();
        let repository = Self { folder, root };
        repository.git(init);
        repository
    }

    /// A place beside the repository.
    pub fn sibling_path(&self, name: &str) -> PathBuf {
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
pub fn git_command(folder: &Path) -> Command {
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
    let output = git_command(folder).args(arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {stderr}", arguments.iter().map(A::as_ref).collect::<Vec<_>>());
    String::from_utf8(output.stdout).unwrap().trim_end_matches('\n').to_owned()
}

/// Paths, in order.
pub fn paths<const N: usize>(names: [&str; N]) -> Vec<PathBuf> {
    names.map(PathBuf::from).into()
}

/// What every file of the tree has, without git's own: where a link leads, for a link.
pub fn contents(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if entry.file_name() == ".git" {
                continue;
            } else if kind.is_dir() {
                folders.push(path);
            } else {
                let content = match fs::read_link(&path) {
                    Ok(target) => target.into_os_string().into_encoded_bytes(),
                    Err(_) => fs::read(&path).unwrap(),
                };
                found.insert(path.strip_prefix(root).unwrap().to_owned(), content);
            }
        }
    }
    found
}

/// Which files have another content now, or are gone.
pub fn lost_paths(before: &BTreeMap<PathBuf, Vec<u8>>, after: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<PathBuf> {
    let lost = before.iter().filter(|(path, content)| after.get(*path) != Some(*content));
    lost.map(|(path, _)| path.clone()).collect()
}

/// By which number and when each file was written.
pub fn file_stats(root: &Path) -> BTreeMap<PathBuf, (u64, i64, i64)> {
    let stamp = |path: PathBuf| {
        let kind = root.join(&path).symlink_metadata().unwrap();
        (path, (kind.ino(), kind.mtime(), kind.mtime_nsec()))
    };
    contents(root).into_keys().map(stamp).collect()
}

/// Which files that are still there were written anew, with whatever content.
pub fn rewritten_paths(before: &BTreeMap<PathBuf, (u64, i64, i64)>, root: &Path) -> Vec<PathBuf> {
    let after = file_stats(root);
    let written = before.iter().filter(|(path, stamp)| after.get(*path).is_some_and(|now| now != *stamp));
    written.map(|(path, _)| path.clone()).collect()
}
