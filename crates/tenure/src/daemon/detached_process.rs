//! Cuts a daemon off from whoever started it: what an agent kills, waits for or inherits must not be the daemon's.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use crate::configuration::variable;
use crate::exit;
use crate::terminal_message::print_error;

/// What `tenure` is started as between a hook and its daemon. This is no command for people.
pub const SUBCOMMAND: &str = "detached-daemon";

/// Starts the daemon on this socket, says its process id on standard output, and ends.
///
/// What it says goes where our standard error goes. Its parent is gone at once, so nobody can mistake it for a child of
/// the agent.
pub fn run(socket: Option<OsString>) -> ExitCode {
    let started = socket.ok_or_else(|| io::Error::other("no socket was named")).and_then(start);
    match started.and_then(|process| writeln!(io::stdout(), "{process}")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error("the daemon cannot be started", &error);
            exit::UNAVAILABLE.into()
        }
    }
}

fn start(socket: OsString) -> io::Result<u32> {
    close_inherited()?;
    // A session of its own: no terminal, and no group that somebody ends.
    rustix::process::setsid()?;
    let log = io::stderr().as_fd().try_clone_to_owned()?;
    // By its own name where it still has it, so that people find it; a replaced program has none.
    let named = std::env::current_exe().ok().filter(|program| program.is_file());
    let mut daemon = Command::new(named.unwrap_or_else(|| PathBuf::from("/proc/self/exe")));
    daemon.arg0("tenure").args(["serve", "--listen", "none", "--socket"]).arg(socket);
    daemon.stdin(Stdio::null()).stdout(log).stderr(Stdio::inherit());
    // Not in somebody's checkout, which could not be removed or unmounted then.
    daemon.current_dir(home().filter(|home| home.is_dir()).unwrap_or_else(|| PathBuf::from("/")));
    daemon.spawn().map(|daemon| daemon.id())
}

fn home() -> Option<PathBuf> {
    variable("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// Closes every descriptor that was inherited beside the three that everybody has. Nothing else is open yet.
fn close_inherited() -> io::Result<()> {
    let names: Vec<_> = fs::read_dir("/proc/self/fd")?.flatten().map(|entry| entry.file_name()).collect();
    let numbers = names.iter().filter_map(|name| name.to_str()?.parse::<i32>().ok());
    for number in numbers.filter(|number| *number > 2) {
        // One of them read the folder, and is closed by now.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}
