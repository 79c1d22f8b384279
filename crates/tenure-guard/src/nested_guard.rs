//! Whether this process is watched by a guard already.

use std::ffi::CStr;

use nix::unistd::execve;
use rustix::io::Errno;

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
pub const GUARDED_ERRNO: Errno = Errno::ALREADY;

/// Whether a keeper above us watches us. Then a second one is neither needed nor possible.
///
/// The keeper itself is asked: whoever is in a namespace of its own cannot see who is above, and what a keeper starts for
/// itself is not watched though there is one above.
pub fn is_guarded() -> bool {
    let environment: [&CStr; 0] = [];
    let failed = execve(NOWHERE, &[c"tenure", PROBE_ARGUMENT_BYTES], &environment).err();
    failed.is_some_and(|error| error as i32 == GUARDED_ERRNO.raw_os_error())
}
