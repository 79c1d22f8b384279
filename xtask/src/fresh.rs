//! The promise of the README: a toolchain and a C compiler are enough.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::problem::Problem;
use crate::process::{self, say};
use crate::workspace::Workspace;

/// Builds the last commit with nothing but the toolchain and gcc, as on a fresh machine
///
/// Clones the repository below the target folder and runs `cargo build --release` with a PATH of
/// cargo, the C compiler and binutils alone, then asks the program for its version.
#[derive(clap::Args)]
pub struct Arguments {}

/// All that the build may find: rustup's toolchain, gcc and what gcc runs.
const PROGRAMS: &[&str] = &["cargo", "rustc", "cc", "gcc", "ld", "as", "ar"];

/// What is kept of the environment: where the toolchain is, and how the network is reached.
const VARIABLES: &[&str] = &[
    "HOME",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Clones, builds, asks for the version.
pub fn run(workspace: &Workspace, _arguments: &Arguments) -> Result<(), Problem> {
    let folder = workspace.target.join("fresh");
    let (tree, programs) = (folder.join("tree"), folder.join("bin"));
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| Problem::file(&folder, &error))?;
    }
    link_programs(&programs)?;
    clone(&workspace.root, &tree)?;

    let mut build = bare(&programs.join("cargo"), &programs, &tree);
    process::succeed(
        build.args(["build", "--release", "--locked"]),
        "the repository does not build on a machine that has only rustup's toolchain and gcc",
        "find the program that a build script calls, and take that dependency out or replace it",
    )?;
    let mut version = bare(&tree.join("target/release/tenure"), &programs, &tree);
    let answer = process::output(
        version.arg("--version"),
        "what was built does not run",
        "run `cargo run --release -- --version`",
    )?;
    if !answer.starts_with("tenure ") {
        return Err(Problem::new(
            format!("`tenure --version` printed {answer:?}"),
            "something was built, but it is not the program of the README",
            "it must print `tenure` and its version",
        ));
    }
    say(&format!("{} was built from a fresh clone with {} alone", answer.trim(), PROGRAMS.join(", ")));
    Ok(())
}

/// A folder that holds `PROGRAMS` and nothing else.
fn link_programs(folder: &Path) -> Result<(), Problem> {
    fs::create_dir_all(folder).map_err(|error| Problem::file(folder, &error))?;
    for name in PROGRAMS {
        let program = rustup_proxy(name).or_else(|| process::find(name)).ok_or_else(|| {
            Problem::new(
                format!("`{name}` is not on the PATH"),
                "this machine has less than the README asks for",
                "install Rust through rustup, and gcc",
            )
        })?;
        let link = folder.join(name);
        symlink(program, &link).map_err(|error| Problem::file(&link, &error))?;
    }
    Ok(())
}

/// The proxy of rustup, which reads rust-toolchain.toml; inside a task, the PATH may name the toolchain itself first.
fn rustup_proxy(name: &str) -> Option<PathBuf> {
    let home =
        env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")))?;
    Some(home.join("bin").join(name)).filter(|program| program.is_file())
}

fn clone(root: &Path, tree: &Path) -> Result<(), Problem> {
    let mut command = process::command("git");
    command.args(["clone", "--quiet"]).arg(root).arg(tree);
    process::succeed(
        &mut command,
        "there is no fresh clone to build",
        "run this in a clone of the repository, with git installed and something committed",
    )
}

/// A command that sees only `programs` and `VARIABLES`.
fn bare(program: &Path, programs: &Path, tree: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", programs).current_dir(tree);
    for name in VARIABLES {
        if let Some(value) = env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}
