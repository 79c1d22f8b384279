//! `tenure guard`: a command and its descendants need a lease for each file that they change.
//!
//! ```text
//! tenure guard       launcher: starts the supervisor, forwards signals, exits with the command's code
//!   └─ supervisor    syscall_supervisor: receives each call that would change a file (syscall_effects), asks the server
//!        └─ command  installs the seccomp filter for itself, sends the listener up, executes the command
//!             └─ descendants
//! ```
//!
//! The supervisor is not filtered itself. It is a subreaper, and so an ancestor of all that it supervises: some systems let
//! only ancestors read the memory of a process. It outlives the last of them; the launcher waits for the command alone.

mod files_api;
mod job_control;
mod launcher;
mod protocol;
pub mod seccomp_probe;
mod session_selector;
mod signals;
mod syscall_effects;
mod syscall_supervisor;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rustix::io::Errno;
use thiserror::Error;

pub use self::files_api::{ConnectFilesApi, FilesApi, FilesResponse, RequestError};
pub use self::launcher::run;
pub use self::seccomp_probe::is_guarded;
pub use self::session_selector::SessionSelector;
pub use self::syscall_supervisor::process_tree::{end_all_descendants, end_with_descendants};

/// What the start of a server fails with for whoever is watched: the keeper started it in its place.
pub const SERVER_STARTED_ERRNO: Errno = Errno::ALREADY;

/// What the program is started as to start a server that outlives it. No command for people.
pub const DETACHED: &str = "detached-daemon";

/// How the shell is called that runs under the guard. Agents take a shell by its name: it must contain "bash".
const SHIM_NAME: &str = "tenure-bash";

/// What the front calls its keeper. A name that nobody types.
const SUPERVISOR_SUBCOMMAND: &str = "__guard-keeper";
/// What the keeper calls the process that becomes the command.
const EXEC_SUBCOMMAND: &str = "__guarded";

/// Why a command was not run behind the gate, or not to its end.
#[derive(Debug, Error)]
pub enum GuardError {
    #[error("no command was named")]
    NoCommand,
    #[error("{} cannot be run: {error}", program.display())]
    NotExecuted { program: OsString, error: io::Error },
    #[error(
        "nothing was run: the guard cannot be started ({0}). Run the command without `tenure guard` only if no other agent \
         works here."
    )]
    NotStarted(#[from] io::Error),
    #[error("nothing was run: {why}. {remedy}")]
    NotWatched { why: String, remedy: String },
    #[error("whoever watched the command was killed, so the command was ended too. Run it again.")]
    SupervisorKilled,
    /// Another process of the guard says why.
    #[error("the guard failed")]
    Reported,
}

/// Runs what only a guard starts, and the shell that agents are given. Nothing if this is neither.
pub fn run_internal_subcommand(
    mut arguments: impl Iterator<Item = OsString>,
    connect: ConnectFilesApi,
) -> Option<Result<ExitCode, GuardError>> {
    let own = arguments.next()?;
    if let Some(shim) = Shim::from_program_name(&own) {
        let login = (shim == Shim::Login).then(|| "--login".into());
        let command: Vec<OsString> =
            [shell().into_os_string()].into_iter().chain(login).chain(arguments).collect();
        return Some(launcher::run(&command, &SessionSelector::new(None, None)));
    }
    let name = arguments.next()?;
    match name.to_str()? {
        SUPERVISOR_SUBCOMMAND => Some(syscall_supervisor::run(&arguments.collect::<Vec<_>>(), connect)),
        EXEC_SUBCOMMAND => Some(Err(launcher::exec_filtered(&arguments.collect::<Vec<_>>()))),
        _ => None,
    }
}

/// Whether this names the shell that runs under the guard.
pub fn is_tenure_bash(shell: &Path) -> bool {
    Shim::from_program_name(shell.as_os_str()).is_some()
}

/// The shell that agents are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shim {
    Plain,
    /// With a dash before its name, as whoever logs somebody in calls a shell.
    Login,
}

impl Shim {
    fn from_program_name(own: &OsStr) -> Option<Self> {
        let name = Path::new(own).file_name()?.to_str()?;
        match name.strip_prefix('-') {
            Some(SHIM_NAME) => Some(Self::Login),
            _ => (name == SHIM_NAME).then_some(Self::Plain),
        }
    }
}

/// The real shell: the first of its name on the PATH that is not this program.
fn shell() -> PathBuf {
    let own = std::env::current_exe().ok().and_then(|own| own.canonicalize().ok());
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut found = std::env::split_paths(&folders).map(|folder| folder.join("bash"));
    let is_real = |path: &PathBuf| path.canonicalize().is_ok_and(|path| Some(path) != own);
    found.find(is_real).unwrap_or_else(|| PathBuf::from("/bin/bash"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shim_is_recognised_by_its_name_also_as_a_login_shell() {
        let called = |name: &str| Shim::from_program_name(OsStr::new(name));
        assert_eq!(called("/home/me/.local/bin/tenure-bash"), Some(Shim::Plain));
        assert_eq!(called("-tenure-bash"), Some(Shim::Login));
        assert_eq!((called("tenure"), called("-bash")), (None, None));
    }
}
