//! The promise of the README: a toolchain and a C compiler are enough.

use std::env;
use std::path::{Path, PathBuf};

use xshell::cmd;

use crate::process::{self, TaskError, print_line};
use crate::workspace::Workspace;

/// Builds the last commit with nothing but the toolchain and gcc, as on a fresh machine
///
/// Clones the repository below the target folder and runs `cargo build --release` with a PATH of
/// cargo, the C compiler and binutils alone, then asks the program for its version.
#[derive(clap::Args)]
pub struct CleanBuild {}

/// All that the build may find: rustup's toolchain, gcc and what gcc runs.
const PROGRAMS: &[&str] = &["cargo", "rustc", "cc", "gcc", "ld", "as", "ar"];

/// What is kept of the environment: where the toolchain is, and how the network is reached.
const VARIABLES: &str = "HOME CARGO_HOME RUSTUP_HOME http_proxy https_proxy no_proxy \
                         HTTP_PROXY HTTPS_PROXY NO_PROXY SSL_CERT_FILE SSL_CERT_DIR";

impl CleanBuild {
    /// Clones, builds, asks for the version.
    pub fn run(&self, workspace: &Workspace) -> Result<(), TaskError> {
        let (shell, root) = (&workspace.shell, &workspace.root);
        let folder = workspace.target.join("fresh");
        let (tree, programs) = (folder.join("tree"), folder.join("bin"));
        shell.remove_path(&folder)?;
        shell.create_dir(&programs)?;
        for name in PROGRAMS {
            link(name, &programs.join(name))?;
        }
        let hint = "run this in a clone of the repository, with git installed and something committed";
        process::run(cmd!(shell, "git clone --quiet {root} {tree}"), hint)?;

        let _inside = shell.push_dir(&tree);
        let bare = |program: &Path| {
            let kept = VARIABLES.split(' ').filter_map(|name| Some((name, env::var_os(name)?)));
            shell.cmd(program).env_clear().env("PATH", &programs).envs(kept)
        };
        process::run(
            bare(&programs.join("cargo")).args(["build", "--release", "--locked"]),
            "find the program that a build script calls, and take that dependency out or replace it",
        )?;
        let version = bare(&tree.join("target/release/tenure")).arg("--version");
        let answer = process::output(version, "run `cargo run --release -- --version`")?;
        if !answer.starts_with("tenure ") {
            let what = format!("`tenure --version` printed {answer:?}");
            return Err(TaskError::new(what, "it must print `tenure` and its version"));
        }
        print_line(&format!(
            "{} was built from a fresh clone with {} alone",
            answer.trim(),
            PROGRAMS.join(", ")
        ));
        Ok(())
    }
}

/// Links a program: the proxy of rustup, which reads rust-toolchain.toml, before what is on the PATH, which may name the
/// toolchain itself.
fn link(name: &str, link: &Path) -> Result<(), TaskError> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    let proxy = home.map(|home| home.join("bin").join(name)).filter(|program| program.is_file());
    let program = proxy.or_else(|| process::find_program(name)).ok_or_else(|| {
        TaskError::new(format!("`{name}` is not on the PATH"), "install Rust through rustup, and gcc")
    })?;
    std::os::unix::fs::symlink(program, link).map_err(|error| {
        TaskError::new(format!("{}: {error}", link.display()), "check that the disk is not full")
    })
}
