//! The keeper: above everything that it watches, and not watched itself.
//!
//! ```text
//! keeping   the command, from its start to its end
//! gate      hears each call; judging: most are answered there, without asking anybody
//! scope     which files are somebody's at all        granted   what was granted and still is
//! owners    whose call it is                         changed   whether a file changed since its writer began
//! asking    what is not known is found out, the call answered    acquiring, speaking   the server is asked, and for whom
//! git, folders, repositories   many files at once
//! telling   what is said on standard error           family, orphans   who ended or stopped, and who must end
//! writing   to whoever may not read it
//! ```

mod acquiring;
mod asking;
mod changed;
pub mod family;
mod folders;
mod gate;
mod git;
mod granted;
mod judging;
mod keeping;
mod orphans;
mod owners;
mod repositories;
mod scope;
mod speaking;
mod telling;
mod writing;

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
use tenure_seccomp::Listener;
use tokio::sync::Semaphore;

use self::granted::Granted;
use self::keeping::Keeper;
use self::owners::Owners;
use self::scope::Scope;
use self::telling::Teller;
use super::link::Report;
use super::naming::Naming;
use crate::daemon::{Questions, Unanswered};
use crate::watched::Link;
use crate::{descriptors, exit};

/// How long an answer of the server may take.
const PATIENCE: Duration = Duration::from_secs(12);
/// How many calls are settled at once: each takes a connection.
const AT_ONCE: usize = 64;

/// Everything that is known of those that are watched.
pub struct Watched {
    listener: Listener,
    owners: Owners,
    scope: Scope,
    granted: Mutex<Granted>,
    /// Or why nobody can be asked.
    questions: Result<Questions, String>,
    teller: Teller,
    naming: Naming,
    /// What we are called if nobody names a session.
    own_name: String,
    command: u32,
    task: String,
    /// When the command began, on the wall clock.
    began: i128,
    /// Whether the server knows whom we speak for.
    is_introduced: AtomicBool,
    /// How many calls are settled at once.
    turns: Semaphore,
}

impl Watched {
    async fn tell(self: &Arc<Self>, process: u32, text: String) {
        let own = self.clone();
        let _ = tokio::task::spawn_blocking(move || own.teller.tell(process, &text)).await;
    }
}

/// Runs a command and watches it. Our input is the connection to the front.
pub fn run(words: &[OsString]) -> ExitCode {
    let inherited = inherited();
    let run = || -> io::Result<()> {
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let standard = descriptors::receive(&stream)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let kept = runtime.block_on(async {
            let mut front = Link::new(stream)?;
            let Some((naming, command)) = Naming::split(words) else {
                return Err(io::Error::other("no command was named"));
            };
            match Keeper::begin(naming, command, standard, &inherited) {
                Ok(keeper) => keeper.keep(front).await,
                Err(error) => front.send(&not_watched(&error)).await,
            }
        });
        // Nobody is left whom anything could be told.
        runtime.shutdown_background();
        kept
    };
    if run().is_ok() { ExitCode::SUCCESS } else { exit::UNAVAILABLE.into() }
}

fn not_watched(error: &io::Error) -> Report {
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
    Report::NotWatched { why: format!("its calls cannot be watched ({error})"), remedy: remedy.to_owned() }
}

fn why_nobody(unanswered: Unanswered) -> String {
    match unanswered {
        Unanswered::NoServer { why, fix } => {
            format!("Nothing was changed: {why}. The person can run `{fix}`.")
        }
        Unanswered::Refused(detail) => detail,
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
