//! Whether the system lets calls be watched: tried by a process of its own, since whoever tries it is watched from then on.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

use nix::errno::Errno;

/// What the process is started as. No command for people.
const SUBCOMMAND: &str = "__gate-probe";

/// What it ends with if the system gave no number for its refusal.
const UNKNOWN: u8 = u8::MAX;

/// Runs the attempt. Nothing, if this is nothing of that.
pub fn run_internal_subcommand(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    (arguments.nth(1)? == SUBCOMMAND).then(attempt)
}

fn attempt() -> ExitCode {
    match tenure_seccomp::install() {
        Ok(_listener) => ExitCode::SUCCESS,
        Err(error) => {
            let number = error.raw_os_error().and_then(|number| u8::try_from(number).ok());
            number.filter(|number| *number != 0).unwrap_or(UNKNOWN).into()
        }
    }
}

/// Why calls cannot be watched here; nothing, if they can. It needs no server, and nothing stays.
pub fn seccomp_unavailable_reason() -> Option<String> {
    // There can be only one who listens, and that is ours.
    if crate::is_guarded() {
        return None;
    }
    let mut command = Command::new("/proc/self/exe");
    command.arg0("tenure").arg(SUBCOMMAND).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => None,
        Ok(status) => Some(match status.code().filter(|code| *code != i32::from(UNKNOWN)) {
            Some(number) => Errno::from_raw(number).to_string(),
            None => "it does not say why".to_owned(),
        }),
        Err(error) => Some(format!("it cannot be tried: {error}")),
    }
}
