//! Whether a command can be run, before anybody waits for a lease.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::exit;
use crate::failure::Failure;

/// Says why `program` surely cannot be run, if that is known.
pub fn check(program: &OsStr) -> Result<(), Failure> {
    let path = Path::new(program);
    if path.components().count() > 1 || path.has_root() {
        return check_file(path, program);
    }
    // Without a PATH the system has a choice of its own.
    let Some(folders) = env::var_os("PATH") else { return Ok(()) };
    let candidates: Vec<PathBuf> = env::split_paths(&folders).map(|folder| folder.join(path)).collect();
    if candidates.iter().any(|candidate| check_file(candidate, program).is_ok()) {
        return Ok(());
    }
    match candidates.iter().find(|candidate| candidate.is_file()) {
        Some(candidate) => check_file(candidate, program),
        None => Err(exec_failure(program, &io::ErrorKind::NotFound.into())),
    }
}

fn check_file(path: &Path, program: &OsStr) -> Result<(), Failure> {
    let metadata = path.metadata().map_err(|error| exec_failure(program, &error))?;
    let is_executable = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
    if is_executable { Ok(()) } else { Err(exec_failure(program, &io::ErrorKind::PermissionDenied.into())) }
}

/// The failure of a command that the system did not start, with the code that a shell gives it.
pub fn exec_failure(program: &OsStr, error: &io::Error) -> Failure {
    let program = program.display();
    match error.kind() {
        io::ErrorKind::NotFound => Failure::from_message(
            exit::NO_SUCH_COMMAND,
            &format!("there is no command {program}; look at how it is written, and at PATH"),
        ),
        io::ErrorKind::PermissionDenied => Failure::from_message(
            exit::CANNOT_EXECUTE,
            &format!("{program} may not be executed; `chmod +x` lets it, if it is a program"),
        ),
        _ => Failure::new(exit::CANNOT_EXECUTE, &format!("{program} cannot be run"), error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unrunnable_program_is_rejected_before_it_is_started() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        std::fs::write(&plain, "").unwrap();
        let code = |program: &OsStr| check(program).map_err(|failure| failure.code());
        assert_eq!(code("sh".as_ref()), Ok(()));
        assert_eq!(code("/bin/sh".as_ref()), Ok(()));
        assert_eq!(code("there-is-no-such-command".as_ref()), Err(127));
        assert_eq!(code("/nowhere/at-all".as_ref()), Err(127));
        assert_eq!(code(plain.as_ref()), Err(126));
        assert_eq!(code(folder.path().as_ref()), Err(126));
    }
}
