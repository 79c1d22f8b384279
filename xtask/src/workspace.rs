//! What cargo knows about the repository: where it is, which packages it has, and what they depend on.

use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{MetadataCommand, Package};

use crate::problem::Problem;

/// The repository, as `cargo metadata` describes it.
pub struct Workspace {
    /// The folder with the workspace's Cargo.toml.
    pub root: PathBuf,
    /// Where everything goes that is built or installed here.
    pub target: PathBuf,
    /// The packages of the workspace.
    pub packages: Vec<Package>,
}

impl Workspace {
    /// Asks cargo about the repository around the current folder. Needs no network.
    pub fn find() -> Result<Self, Problem> {
        let offline = ["--offline".to_owned()];
        let metadata = MetadataCommand::new().no_deps().other_options(offline).exec().map_err(|error| {
            let remedy = "correct the Cargo.toml that cargo names";
            Problem::new(error.to_string(), "the workspace cannot be read", remedy)
        })?;
        Ok(Self {
            root: metadata.workspace_root.into(),
            target: metadata.target_directory.into(),
            packages: metadata.packages,
        })
    }

    /// The text of a file of the repository.
    pub fn read(&self, file: &str) -> Result<String, Problem> {
        let path = self.root.join(file);
        fs::read_to_string(&path).map_err(|error| Problem::file(&path, &error))
    }
}

/// Every file below `folder`, in a fixed order. What is built, and what git keeps for itself, is left out.
pub fn files_below(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| Problem::file(&folder, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| Problem::file(&folder, &error))?;
            let kind = entry.file_type().map_err(|error| Problem::file(&entry.path(), &error))?;
            let name = entry.file_name();
            if kind.is_file() {
                found.push(entry.path());
            } else if kind.is_dir()
                && !["target", ".git", "node_modules"].iter().any(|skipped| name == *skipped)
            {
                waiting.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}
