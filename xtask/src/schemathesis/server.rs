//! The real program on a scratch folder.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::problem::Problem;
use crate::process;
use crate::workspace::Workspace;

/// A server that ends, and takes its folder along, when this is dropped.
pub struct Server {
    child: Child,
    folder: PathBuf,
    url: String,
}

/// Builds the program.
pub fn build(workspace: &Workspace) -> Result<(), Problem> {
    let mut build = process::cargo();
    build.args(["build", "--locked", "--package", "tenure"]).current_dir(&workspace.root);
    process::succeed(&mut build, "the program cannot be built", "see above")
}

impl Server {
    /// Starts what was built on any free port. When this returns, requests are answered.
    pub fn start(workspace: &Workspace) -> Result<Self, Problem> {
        let folder = workspace.target.join(format!("tmp/schemathesis-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| Problem::file(&folder, &error))?;
        let program = workspace.target.join("debug/tenure");
        let mut serve = process::command(&program);
        serve
            .args(["serve", "--listen", "127.0.0.1:0", "--socket", "none", "--data"])
            .arg(folder.join("data"));
        // Whatever is set up for somebody else's server counts for nothing here.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TENURE_"))
        {
            serve.env_remove(name);
        }
        serve.env("XDG_CONFIG_HOME", &folder).env("XDG_STATE_HOME", &folder).stdout(Stdio::piped());
        let child = serve.spawn().map_err(|error| Problem::file(&program, &error))?;
        let mut server = Self { child, folder, url: String::new() };
        let output = server.child.stdout.take().map(BufReader::new);
        let first = output.and_then(|output| output.lines().next()?.ok()).unwrap_or_default();
        let url = first.split_whitespace().find(|word| word.starts_with("http://"));
        server.url = url.map(str::to_owned).ok_or_else(|| {
            Problem::new(
                format!("`tenure serve` did not say where it listens, but {first:?}"),
                "there is nothing to try",
                "see above; start `cargo run -- serve` by hand",
            )
        })?;
        Ok(server)
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A folder that nobody else uses.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The token that may do everything.
    pub fn token(&self) -> Result<String, Problem> {
        let path = self.folder.join("data/admin.token");
        let read = fs::read_to_string(&path).map_err(|error| Problem::file(&path, &error))?;
        Ok(read.trim_end().to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
