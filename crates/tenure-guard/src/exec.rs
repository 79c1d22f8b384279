//! Between the keeper and the command: installs the filter for itself, hands the listener up, and becomes the command.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use rustix::process::{Signal, set_parent_process_death_signal};
use tenure_host::interprocess::fd_transfer;

use super::launcher::exec_command;
use crate::GuardError;

/// Becomes the command, watched. Its input is the connection to the keeper, over which its real one comes.
pub fn run(command: &[OsString]) -> GuardError {
    match prepare() {
        Ok(()) => exec_command(command),
        // The keeper says why.
        Err(_) => GuardError::Reported,
    }
}

fn prepare() -> io::Result<()> {
    let mut stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let [input, output, errors] = fd_transfer::receive(&stream)?;
    // Without its keeper it could do nothing any more, in the middle of whatever it does.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let listener = match tenure_seccomp::install() {
        Ok(listener) => listener,
        Err(error) => {
            let number = error.raw_os_error().unwrap_or_default();
            // One byte where a descriptor would come, then why there is none.
            stream.write_all(b"!")?;
            stream.write_all(&number.to_le_bytes())?;
            return Err(error);
        }
    };
    fd_transfer::send(&stream, &[listener.as_fd()])?;
    drop(listener);
    // Nothing that waits is done here until somebody listens.
    stream.read_exact(&mut [0])?;
    rustix::stdio::dup2_stdin(&input)?;
    rustix::stdio::dup2_stdout(&output)?;
    rustix::stdio::dup2_stderr(&errors)?;
    Ok(())
}
