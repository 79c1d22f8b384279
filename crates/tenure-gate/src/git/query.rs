//! Starts git. Nothing else in this crate does.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};

use super::GitError;
use super::bounded_process::{ChildOutput, run_bounded};
use super::env::is_config_location;
use super::ignored::is_read_only_subcommand;

/// Asking writes nothing and runs nothing of anybody's: no monitor, no index that is written anew since files were touched.
const FORCED_SETTINGS: [&str; 2] = ["core.fsmonitor=false", "diff.autoRefreshIndex=false"];
const NO_HOOKS: &str = "core.hooksPath=/dev/null";

/// How long git may take. A hook waits for it.
const LIMIT: Duration = Duration::from_secs(10);

/// Lists of paths are read up to here.
pub(super) const MAX_OUTPUT_BYTES: usize = 64 << 20;

static LITERAL: OnceLock<[OsString; 1]> = OnceLock::new();

pub(super) struct GitQuery<'a> {
    pub root: &'a Path,
    pub subcommand: &'static str,
    pub arguments: Vec<OsString>,
    /// The index to look at, where it is not the one of the repository: a partial commit has its own.
    pub index: Option<&'a Path>,
    /// What an agent's own git was told. Where there is no agent, the person's settings count; else nothing of git's environment
    /// gets through but this.
    pub environment: Option<&'a [(OsString, OsString)]>,
    /// Where an agent's own git is. Counts in any case.
    pub location: &'a [(OsString, OsString)],
    /// Settings that an agent made for its own git, as `name=value`.
    pub settings: &'a [OsString],
    /// How paths are read: as they are, unless somebody wrote patterns.
    pub pathspecs: &'a [OsString],
    /// Names that are asked about, where they do not fit a command line.
    pub input: Option<Vec<u8>>,
    /// How much of an answer is read.
    pub max_output_bytes: usize,
}

impl<'a> GitQuery<'a> {
    /// Asks `subcommand` with these arguments, in the tree at `root`.
    pub fn new<A: Into<OsString>>(
        root: &'a Path,
        subcommand: &'static str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self {
            root,
            subcommand,
            arguments,
            index: None,
            environment: None,
            location: &[],
            settings: &[],
            pathspecs: LITERAL.get_or_init(|| ["--literal-pathspecs".into()]),
            input: None,
            max_output_bytes: MAX_OUTPUT_BYTES,
        }
    }

    /// What git answers, if it ends well.
    pub fn output(&self) -> Result<Vec<u8>, GitError> {
        let output = self.run()?;
        if output.status.success() { Ok(output.stdout) } else { Err(self.error_from(&output)) }
    }

    /// What git answers, or nothing if it says no quietly (code 1): for questions about what may not be there.
    pub fn optional_output(&self) -> Result<Option<Vec<u8>>, GitError> {
        let output = self.run()?;
        match output.status.code() {
            Some(0) => Ok(Some(output.stdout)),
            Some(1) => Ok(None),
            _ => Err(self.error_from(&output)),
        }
    }

    fn run(&self) -> Result<ChildOutput, GitError> {
        if !is_read_only_subcommand(self.subcommand, &self.arguments) {
            return Err(GitError::NotReadOnly(self.subcommand));
        }
        let mut command = Command::new("git");
        command.args(["--no-optional-locks", "--no-pager"]).args(self.pathspecs);
        let settings = self.settings.iter().map(OsString::as_os_str);
        // `rev-parse` runs no hook, and is who says where hooks are.
        let no_hooks = (self.subcommand != "rev-parse").then_some(NO_HOOKS);
        // Ours come last, and win.
        for setting in settings.chain(FORCED_SETTINGS.into_iter().chain(no_hooks).map(OsStr::new)) {
            command.arg("-c").arg(setting);
        }
        command.arg("-C").arg(self.root).arg(self.subcommand).args(&self.arguments);
        for (name, _) in std::env::vars_os() {
            let is_gits = name.as_encoded_bytes().starts_with(b"GIT_");
            // Every other `GIT_…` variable is about the command that a hook runs in.
            let must_be_removed =
                if is_config_location(&name) { self.environment.is_some() } else { is_gits };
            if must_be_removed {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_NO_LAZY_FETCH", "1");
        let variables = self.environment.unwrap_or_default().iter().chain(self.location);
        command.envs(variables.map(|(name, value)| (name, value)));
        if let Some(index) = self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        let input = self.input.as_deref().map(memory_file).transpose();
        let input = input
            .map_err(|error| GitError::Failed { subcommand: self.subcommand, message: error.to_string() })?;
        command.stdin(input.map_or_else(Stdio::null, Stdio::from));
        run_bounded(command, self.subcommand, self.max_output_bytes, LIMIT)
    }

    fn error_from(&self, output: &ChildOutput) -> GitError {
        let text = String::from_utf8_lossy(&output.stderr);
        if text.contains("not a git repository") {
            return GitError::NotARepository;
        }
        if text.contains("must be run in a work tree") {
            return GitError::Bare;
        }
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        let message = line.chars().filter(|letter| !letter.is_control()).take(300).collect();
        GitError::Failed { subcommand: self.subcommand, message }
    }
}

/// A file without a name: whoever writes into it never waits for whoever reads.
fn memory_file(content: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("names", MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    // S4-6, S4-40, S4-41, S4-60
    #[test]
    fn subcommands_that_could_write_are_not_run() {
        let folder = tempfile::tempdir().unwrap();
        for subcommand in [
            "add",
            "commit",
            "stash",
            "checkout",
            "switch",
            "restore",
            "reset",
            "clean",
            "rm",
            "mv",
            "merge",
            "rebase",
            "am",
            "apply",
            "cherry-pick",
            "revert",
            "update-index",
            "update-ref",
            "symbolic-ref",
            "commit-tree",
            "write-tree",
            "hash-object",
            "read-tree",
            "checkout-index",
            "config",
            "gc",
            "init",
            "fetch",
            "push",
            "pull",
            "tag",
            "branch",
            "worktree",
            "notes",
            "!sh",
            "-c",
        ] {
            let result = GitQuery::new(folder.path(), subcommand, ["--help"]).output();
            assert!(matches!(result, Err(GitError::NotReadOnly(name)) if name == subcommand), "{subcommand}");
        }
        let query =
            GitQuery::new(folder.path(), "diff", ["--output=x", "--no-index", "/dev/null", "/etc/passwd"]);
        assert!(matches!(query.output(), Err(GitError::NotReadOnly("diff"))));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
