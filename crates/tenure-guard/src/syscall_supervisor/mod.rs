//! The supervisor: an ancestor of all processes that it supervises, and not filtered itself.
//!
//! ```text
//! supervisor            the command, from its start until no descendant is left
//! listener_loop         receives each call, and answers most of them at once
//! syscall_policy        what to do about a call
//! answer                the other calls, which need a lease or another request to the server
//! acquire               gets leases from the server
//! requests              requests to the server, and the caller that they name
//! attribution           the agent to which a call is attributed
//! path_classifier       which files need a lease
//! grant_cache           what was granted, until its generation ends
//! change_time           whether a file changed after its writer started
//! folder_rename         files of a renamed folder
//! git                   git commands that change many files
//! repository_lifecycle  repositories that are created or removed
//! reporter              messages on the command's stderr
//! timed_write           writes with a timeout, to a reader that may not read
//! process_tree          reaps and kills descendants
//! orphan_processes      kills processes whose agent has exited
//! ```

mod acquire;
mod answer;
mod attribution;
mod change_time;
mod folder_rename;
mod git;
mod grant_cache;
mod listener_loop;
mod orphan_processes;
mod path_classifier;
pub mod process_tree;
mod reporter;
mod repository_lifecycle;
mod requests;
mod supervisor;
mod syscall_policy;
mod timed_write;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;
use tenure_host::interprocess::{MessageStream, fd_transfer};
use tenure_seccomp::Listener;
use tokio::sync::Semaphore;

use self::attribution::CallAttribution;
use self::grant_cache::GrantCache;
use self::path_classifier::PathClassifier;
use self::reporter::StderrReporter;
use self::supervisor::SyscallSupervisor;
use super::protocol::SupervisorReport;
use super::session_selector::SessionSelector;
use crate::{ConnectFilesApi, FilesApi, GuardError, RequestError};

/// How long an answer of the server may take.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(12);
/// How many calls are settled at once: each takes a connection.
const MAX_CONCURRENT_CALLS: usize = 64;

/// Everything that is known of those that are watched.
pub struct SupervisorState {
    listener: Listener,
    attribution: CallAttribution,
    scope: PathClassifier,
    grants: Mutex<GrantCache>,
    /// Or why nobody can be asked.
    client: Result<Box<dyn FilesApi>, String>,
    reporter: StderrReporter,
    selector: SessionSelector,
    /// What we are called if nobody names a session.
    own_name: String,
    command: u32,
    task: String,
    /// When the command began, on the wall clock.
    started_at: i128,
    /// Whether the server knows whom we speak for.
    is_registered: AtomicBool,
    /// How many calls are settled at once.
    call_permits: Semaphore,
}

impl SupervisorState {
    async fn report(self: &Arc<Self>, process: u32, text: String) {
        let own = self.clone();
        let _ = tokio::task::spawn_blocking(move || own.reporter.report(process, &text)).await;
    }
}

/// Runs a command and watches it. Our input is the connection to the front.
pub fn run(words: &[OsString], connect: ConnectFilesApi) -> Result<ExitCode, GuardError> {
    let inherited = inherited();
    let run = || -> io::Result<()> {
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let standard = fd_transfer::receive(&stream)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let kept = runtime.block_on(async {
            let mut launcher = MessageStream::new(stream)?;
            let Some((naming, command)) = SessionSelector::split_arguments(words) else {
                return Err(io::Error::other("no command was named"));
            };
            match SyscallSupervisor::start(naming, command, standard, &inherited, connect) {
                Ok(running) => running.run(launcher).await,
                Err(error) => launcher.send(&not_supervised(&error)).await,
            }
        });
        // Nobody is left whom anything could be told.
        runtime.shutdown_background();
        kept
    };
    run().map(|()| ExitCode::SUCCESS).map_err(|_| GuardError::Reported)
}

fn not_supervised(error: &io::Error) -> SupervisorReport {
    let remedy = match error.raw_os_error() {
        Some(libc_number) if libc_number == rustix::io::Errno::BUSY.raw_os_error() => {
            "Something above it listens to its calls already (a container's or another program's supervisor), and the \
             system allows only one. Run the guard outside of that."
        }
        _ => {
            "The kernel must have seccomp user notification (Linux 5.5 or later, not turned off in a container); `tenure \
             doctor` says what is missing."
        }
    };
    SupervisorReport::NotWatched {
        why: format!("its calls cannot be watched ({error})"),
        remedy: remedy.to_owned(),
    }
}

fn unavailable_message(unanswered: RequestError) -> String {
    match unanswered {
        RequestError::NoServer { why, fix } => {
            format!("Nothing was changed: {why}. The person can run `{fix}`.")
        }
        RequestError::Rejected(detail) => detail,
    }
}

fn task(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ").chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(200).collect()
}

/// What whoever started us left open, beside the three that everybody has.
fn inherited() -> Vec<i32> {
    let names: Vec<_> = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    // The folder itself is closed by now.
    let is_open = |number: &i32| fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_ok();
    names
        .iter()
        .filter_map(|name| name.to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .filter(is_open)
        .collect()
}
