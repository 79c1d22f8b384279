//! Whether the system lets calls be watched, and whether a guard watches this process already.
//!
//! The first is tried by a process of its own, since a process that tries it is watched from then on.

use std::ffi::{CStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

use nix::errno::Errno;
use nix::unistd::execve;

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

/// A program that is not there. Without a guard nothing happens but that it is not found.
const NOWHERE: &CStr = c"/proc/self/there-is-no-such-program";
/// What it is called with: a word that nobody types.
const PROBE_ARGUMENT_BYTES: &CStr = c"__is-it-watched";

/// The same word, as a keeper reads it.
pub const PROBE_ARGUMENT: &str = match PROBE_ARGUMENT_BYTES.to_str() {
    Ok(word) => word,
    Err(_) => "",
};
/// What a keeper lets that call fail with.
pub const GUARDED_ERRNO: rustix::io::Errno = rustix::io::Errno::ALREADY;

/// Whether a keeper above us watches us. Then a second one is neither needed nor possible.
///
/// The keeper itself is asked: whoever is in a namespace of its own cannot see who is above, and what a keeper starts for
/// itself is not watched though there is one above.
pub fn is_guarded() -> bool {
    let environment: [&CStr; 0] = [];
    let failed = execve(NOWHERE, &[c"tenure", PROBE_ARGUMENT_BYTES], &environment).err();
    failed.is_some_and(|error| error as i32 == GUARDED_ERRNO.raw_os_error())
}
