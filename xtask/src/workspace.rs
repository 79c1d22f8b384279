//! The repository: where it is, which packages it has, and its files.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cargo_metadata::{MetadataCommand, Package};
use serde::de::DeserializeOwned;
use xshell::{Cmd, Shell, cmd};

use crate::process::{self, TaskError};

/// The repository, as `cargo metadata` describes it.
pub struct Workspace {
    /// Runs programs in the root.
    pub shell: Shell,
    /// The folder with the workspace's Cargo.toml.
    pub root: PathBuf,
    /// Where everything goes that is built or installed here.
    pub target: PathBuf,
    pub packages: Vec<Package>,
}

impl Workspace {
    /// Asks cargo about the repository around the current folder. Needs no network.
    pub fn find() -> Result<Self, TaskError> {
        let offline = ["--offline".to_owned()];
        let metadata = MetadataCommand::new().no_deps().other_options(offline).exec();
        let metadata = metadata
            .map_err(|error| TaskError::new(error.to_string(), "correct the Cargo.toml that cargo names"))?;
        let shell = Shell::new()?;
        shell.change_dir(&metadata.workspace_root);
        Ok(Self {
            shell,
            root: metadata.workspace_root.into(),
            target: metadata.target_directory.into(),
            packages: metadata.packages,
        })
    }

    /// The cargo that runs this task, so that every step uses the same toolchain.
    pub fn cargo(&self, arguments: &[&str]) -> Cmd<'_> {
        self.shell.cmd(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"))).args(arguments)
    }

    /// A TOML file of the repository.
    pub fn read_toml<T: DeserializeOwned>(&self, file: &str) -> Result<T, TaskError> {
        let read = toml::from_str(&self.shell.read_file(file)?);
        read.map_err(|error| TaskError::new(format!("{file}: {error}"), "correct the file"))
    }

    /// The files that git tracks or would add, as paths below the root.
    pub fn git_files(&self) -> Result<Vec<PathBuf>, TaskError> {
        let list = cmd!(self.shell, "git ls-files -z --cached --others --exclude-standard");
        let names = process::output(list, "run this in a clone of the repository, with git installed")?;
        // A file deleted in the working tree may still be tracked.
        let paths = names.split('\0').map(PathBuf::from).filter(|path| self.root.join(path).is_file());
        Ok(paths.collect())
    }

    /// The files below `folder` with one of these extensions: path below the root, and text.
    pub fn sources(&self, folder: &str, extensions: &[&str]) -> Result<Vec<(PathBuf, String)>, TaskError> {
        let mut sources = Vec::new();
        for path in files_below(&self.shell, &self.root.join(folder))? {
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            if extensions.contains(&extension) {
                let text = self.shell.read_file(&path)?;
                sources.push((path.strip_prefix(&self.root).unwrap_or(&path).to_owned(), text));
            }
        }
        Ok(sources)
    }
}

/// Every file below `folder`, in a fixed order. What is built, and what git keeps for itself, is left out.
pub fn files_below(shell: &Shell, folder: &Path) -> Result<Vec<PathBuf>, TaskError> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in shell.read_dir(&folder)? {
            let is_skipped = ["target", ".git", "node_modules"].iter().any(|name| path.ends_with(name));
            if path.is_symlink() {
                continue;
            } else if path.is_file() {
                found.push(path);
            } else if path.is_dir() && !is_skipped {
                folders.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
