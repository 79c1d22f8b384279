//! Coding agents from npm, in a folder of their own below the target folder. Tests start them beside a model that is played.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::problem::Problem;
use crate::process;
use crate::workspace::Workspace;

/// Tells the tests where the agents are.
pub const VARIABLE: &str = "TENURE_TEST_AGENTS";

/// What was installed, so that nobody asks the network for it again.
const MARK: &str = "installed";

/// With their versions: the ones that were tried. Any node that npm runs on will do: Claude Code asks for a newer one than
/// Debian's, but is a program of its own, and Codex has but a launcher in it.
const PACKAGES: &[&str] = &["@anthropic-ai/claude-code@2.1.326", "@openai/codex@0.169.0"];

/// Where the agents are.
pub fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("tools/agents")
}

/// Installs the agents if they are not there. Touches no network if they are.
pub fn install_missing(workspace: &Workspace) -> Result<(), Problem> {
    let folder = folder(workspace);
    if is_complete(&folder) {
        return Ok(());
    }
    eprintln!("installing {} into {}", PACKAGES.join(", "), folder.display());
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(Problem::file(&folder, &error)),
        _ => fs::create_dir_all(&folder).map_err(|error| Problem::file(&folder, &error))?,
    }
    let mut command = process::command("npm");
    // No script of a package is run: the programs lie in packages for each kind of machine, and need none.
    command.args(["install", "--ignore-scripts", "--include=optional", "--engine-strict=false"]);
    command.args(["--no-audit", "--no-fund", "--no-package-lock", "--no-save", "--loglevel=error"]);
    command.arg("--prefix").arg(&folder).args(PACKAGES).current_dir(&folder);
    process::succeed(
        &mut command,
        &format!("{} could not be installed", PACKAGES.join(", ")),
        "install npm with its node (Debian: npm), and see whether npm's registry can be reached",
    )?;
    let mark = folder.join(MARK);
    fs::write(&mark, PACKAGES.join("\n")).map_err(|error| Problem::file(&mark, &error))
}

/// Whether an installation came to its end, with these versions.
fn is_complete(folder: &Path) -> bool {
    fs::read_to_string(folder.join(MARK)).is_ok_and(|installed| installed == PACKAGES.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_in_another_version_is_not_there() {
        let folder = std::env::temp_dir().join(format!("tenure-xtask-agents-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert!(!is_complete(&folder), "an installation that was cut off left no mark");
        fs::write(folder.join(MARK), "@openai/codex@0.1.0").unwrap();
        assert!(!is_complete(&folder));
        fs::write(folder.join(MARK), PACKAGES.join("\n")).unwrap();
        assert!(is_complete(&folder));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn every_agent_has_one_version() {
        for package in PACKAGES {
            let version = package.rsplit_once('@').map(|(_, version)| version).unwrap_or_default();
            assert!(version.split('.').all(|number| number.parse::<u32>().is_ok()), "{package}");
        }
    }
}
