//! What the tests need beside rustup's toolchain, and how it gets onto a machine.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::problem::Problem;
use crate::process;
use crate::workspace::Workspace;

/// A cargo tool. One that is on the machine is taken if it is new enough; otherwise `install` is built.
pub struct Tool {
    /// The crate and its program.
    name: &'static str,
    /// The oldest version that our configuration was tried with.
    minimum: Version,
    /// The version that is installed.
    install: &'static str,
    /// What the program is asked for its version.
    version_arguments: &'static [&'static str],
}

type Version = (u32, u32, u32);

/// Runs the tests.
pub const NEXTEST: Tool = Tool {
    name: "cargo-nextest",
    minimum: (0, 9, 143),
    install: "0.9.151",
    version_arguments: &["nextest", "--version"],
};

/// Checks licences, sources and duplicates of the dependencies.
pub const DENY: Tool =
    Tool { name: "cargo-deny", minimum: (0, 20, 2), install: "0.20.2", version_arguments: &["--version"] };

/// What the tests need of the system.
#[derive(Clone, Copy)]
enum Need {
    Program(&'static str),
    /// A part of Python that Debian has in a package of its own.
    PythonModule(&'static str),
}

/// Debian packages: what is looked for, and the package that brings it.
const PACKAGES: &[(Need, &str)] = &[
    (Need::Program("cc"), "gcc"),
    (Need::Program("ld"), "binutils"),
    (Need::Program("git"), "git"),
    // Syncs that are slow or fail, disks that are full and clocks that went back are shown to the real program.
    (Need::Program("strace"), "strace"),
    (Need::Program("unshare"), "util-linux"),
    (Need::Program("mount"), "mount"),
    // Ways to change a file, each of which must pass the gate.
    (Need::Program("perl"), "perl"),
    (Need::Program("rsync"), "rsync"),
    (Need::Program("python3"), "python3"),
    (Need::Program("curl"), "curl"),
    // Schemathesis, the MCP client and what tests the Python client come from PyPI, into folders of their own, which Python alone cannot make.
    (Need::PythonModule("ensurepip"), "python3-venv"),
    // Coding agents come from npm, into a folder of their own; one of them is started by node.
    (Need::Program("node"), "nodejs"),
    (Need::Program("npm"), "npm"),
];

/// Installs whatever is missing. Touches no network if nothing is.
pub fn install_missing(workspace: &Workspace) -> Result<(), Problem> {
    install_packages(PACKAGES)?;
    // One folder for both builds, because they share many dependencies; large, and not needed again.
    let build = folder(workspace).join("build");
    for tool in [NEXTEST, DENY] {
        if tool.find(workspace).is_none() {
            tool.install(workspace, &build)?;
        }
    }
    match fs::remove_dir_all(&build) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Problem::file(&build, &error)),
        _ => Ok(()),
    }
}

impl Tool {
    /// Where the tool is: installed by us, or on the PATH and new enough.
    pub fn find(&self, workspace: &Workspace) -> Option<PathBuf> {
        let ours = folder(workspace).join("bin").join(self.name);
        let candidates = ours.is_file().then_some(ours).into_iter().chain(process::find(self.name));
        candidates
            .into_iter()
            .find(|program| self.version(program).is_some_and(|version| version >= self.minimum))
    }

    /// Where the tool is; a problem if it is not there.
    pub fn require(&self, workspace: &Workspace) -> Result<PathBuf, Problem> {
        self.find(workspace).ok_or_else(|| {
            let (major, minor, patch) = self.minimum;
            Problem::new(
                format!("{} {major}.{minor}.{patch} or newer is not installed", self.name),
                "a part of the checks cannot be run",
                "run `cargo xtask test` without `--no-install`, which installs it below the target folder",
            )
        })
    }

    fn version(&self, program: &Path) -> Option<Version> {
        let output = process::command(program).args(self.version_arguments).output().ok()?;
        parse_version(&String::from_utf8_lossy(&output.stdout))
    }

    /// Builds the tool below the target folder. Unoptimised and without what we do not use: that takes a
    /// third of the time, and the tool waits for tests most of its life.
    fn install(&self, workspace: &Workspace, build: &Path) -> Result<(), Problem> {
        eprintln!("installing {} {} into {}", self.name, self.install, folder(workspace).display());
        let mut command = process::cargo();
        command.args(["install", "--quiet", "--locked", "--no-default-features", "--profile", "dev"]);
        command.arg("--root").arg(folder(workspace)).arg(format!("{}@{}", self.name, self.install));
        command
            .env("CARGO_TARGET_DIR", build)
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .current_dir(&workspace.root);
        process::succeed(
            &mut command,
            "a tool that the tests need could not be built",
            "see above; without a network, install it beforehand or copy its program to a folder on the PATH",
        )
    }
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("tools")
}

/// The version in an answer such as `cargo-deny 0.20.2` or `cargo-nextest 0.9.143 (60fa45f63 2026-08-04)`.
fn parse_version(answer: &str) -> Option<Version> {
    let mut numbers = answer.split_whitespace().nth(1)?.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??, numbers.next()??))
}

/// Installs what times whole commands.
pub fn install_hyperfine() -> Result<(), Problem> {
    install_packages(&[(Need::Program("hyperfine"), "hyperfine")])
}

/// Installs the Debian packages that are missing, if this is root on a Debian machine.
fn install_packages(packages: &[(Need, &str)]) -> Result<(), Problem> {
    let missing: Vec<_> = packages.iter().filter(|(need, _)| !need.is_met()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
    let remedy =
        format!("as root: apt-get update && apt-get install --no-install-recommends {}", packages.join(" "));
    if process::find("apt-get").is_none() || !is_root()? {
        return Err(Problem::new(
            format!("these packages are missing: {}", packages.join(" ")),
            "the tests cannot be built or run, and only root may install packages",
            remedy,
        ));
    }
    let means = "packages that the tests need could not be installed";
    process::succeed(process::command("apt-get").arg("update"), means, &remedy)?;
    let mut install = process::command("apt-get");
    install.args(["install", "--yes", "--no-install-recommends"]).args(packages);
    process::succeed(install.env("DEBIAN_FRONTEND", "noninteractive"), means, &remedy)
}

impl Need {
    fn is_met(self) -> bool {
        match self {
            Need::Program(program) => process::find(program).is_some(),
            Need::PythonModule(module) => {
                let mut python = process::command("python3");
                let imported = python.args(["-c", &format!("import {module}")]).output();
                imported.is_ok_and(|output| output.status.success())
            }
        }
    }
}

fn is_root() -> Result<bool, Problem> {
    let means = "nobody can say whether packages may be installed";
    Ok(process::output(process::command("id").arg("-u"), means, "install coreutils")?.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_missing_be_it_a_program_or_a_part_of_python() {
        assert!(Need::Program("cargo").is_met() && !Need::Program("there-is-no-such-program").is_met());
        assert!(!Need::PythonModule("there_is_no_such_module").is_met());
    }

    #[test]
    fn versions_are_read_and_compared_as_numbers() {
        assert_eq!(parse_version("cargo-deny 0.20.2\n"), Some((0, 20, 2)));
        assert_eq!(
            parse_version("cargo-nextest 0.9.143 (60fa45f63 2026-08-04)\nrelease: 0.9.143"),
            Some((0, 9, 143))
        );
        assert!(parse_version("a 0.9.143") > parse_version("a 0.9.99"));
        for answer in ["", "cargo-deny", "cargo-deny unknown", "cargo-deny 1.2"] {
            assert_eq!(parse_version(answer), None, "{answer:?}");
        }
    }

    #[test]
    fn what_is_installed_is_new_enough() {
        for tool in [NEXTEST, DENY] {
            assert!(parse_version(&format!("tool {}", tool.install)) >= Some(tool.minimum), "{}", tool.name);
        }
    }
}
