//! What cargo knows about the repository: where it is, which packages it has, and what they depend on.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::problem::Problem;
use crate::process;

/// The repository, as `cargo metadata` describes it.
pub struct Workspace {
    /// The folder with the workspace's Cargo.toml.
    pub root: PathBuf,
    /// Where everything goes that is built or installed here.
    pub target: PathBuf,
    /// The packages of the workspace.
    pub packages: Vec<Package>,
}

/// One crate of the workspace.
pub struct Package {
    /// Its name.
    pub name: String,
    /// What its Cargo.toml says it depends on, of every kind.
    pub dependencies: Vec<Dependency>,
}

/// One line of a crate's Cargo.toml.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// The name of the crate depended on.
    pub name: String,
    /// Whether it is needed to run, to build or to test.
    pub kind: Kind,
}

/// What a dependency is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It is part of the program.
    Normal,
    /// It is part of the build script.
    Build,
    /// It is part of the tests.
    Development,
}

impl Workspace {
    /// Asks cargo about the repository around the current folder. Needs no network.
    pub fn find() -> Result<Self, Problem> {
        let mut command = process::cargo();
        command.args(["metadata", "--format-version=1", "--no-deps", "--offline"]);
        let text = process::output(
            &mut command,
            "the workspace cannot be read",
            "mend the Cargo.toml that cargo names above",
        )?;
        Self::parse(&text).ok_or_else(|| {
            Problem::new(
                "the answer of `cargo metadata` has another shape than expected",
                "this cargo is newer or older than the one that rust-toolchain.toml names",
                "run through rustup, which reads rust-toolchain.toml",
            )
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let metadata: Value = serde_json::from_str(text).ok()?;
        let path = |key: &str| metadata[key].as_str().map(PathBuf::from);
        let packages = metadata["packages"].as_array()?.iter().map(Package::parse);
        Some(Self {
            root: path("workspace_root")?,
            target: path("target_directory")?,
            packages: packages.collect::<Option<_>>()?,
        })
    }

    /// The text of a file of the repository.
    pub fn read(&self, file: &str) -> Result<String, Problem> {
        let path = self.root.join(file);
        fs::read_to_string(&path).map_err(|error| Problem::file(&path, &error))
    }
}

impl Package {
    fn parse(package: &Value) -> Option<Self> {
        let dependencies = package["dependencies"].as_array()?.iter().map(Dependency::parse);
        Some(Self {
            name: package["name"].as_str()?.to_owned(),
            dependencies: dependencies.collect::<Option<_>>()?,
        })
    }
}

impl Dependency {
    fn parse(dependency: &Value) -> Option<Self> {
        let kind = match dependency["kind"].as_str() {
            None => Kind::Normal,
            Some("build") => Kind::Build,
            Some("dev") => Kind::Development,
            Some(_) => return None,
        };
        Some(Self { name: dependency["name"].as_str()?.to_owned(), kind })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_cargo_is_understood() {
        let workspace = Workspace::parse(
            r#"{ "workspace_root": "/repository", "target_directory": "/elsewhere", "packages": [
                { "name": "tenure-core", "dependencies": [
                    { "name": "prost", "kind": null },
                    { "name": "protox", "kind": "build" },
                    { "name": "proptest", "kind": "dev" } ] } ] }"#,
        )
        .expect("the shape of cargo metadata");
        assert_eq!(workspace.root, Path::new("/repository"));
        assert_eq!(workspace.target, Path::new("/elsewhere"));
        let kinds: Vec<_> =
            workspace.packages[0].dependencies.iter().map(|one| (one.name.as_str(), one.kind)).collect();
        assert_eq!(
            kinds,
            [("prost", Kind::Normal), ("protox", Kind::Build), ("proptest", Kind::Development)]
        );
    }

    #[test]
    fn another_shape_is_refused_and_not_guessed() {
        assert!(Workspace::parse("{}").is_none());
        assert!(Workspace::parse("not json").is_none());
        assert!(
            Workspace::parse(r#"{ "workspace_root": "/r", "target_directory": "/t", "packages": [{}] }"#)
                .is_none()
        );
    }
}
