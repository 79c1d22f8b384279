//! What to do about a call: most can be answered at once, without a request to the server.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use tenure_client::boot_microseconds as now;
use tenure_host::git::changes_many_files;
use tenure_seccomp::{Notification, ProcessMemory, Syscall};

use super::SupervisorState;
use super::attribution::CallOwner;
use super::path_classifier::LeaseRequirement;
use super::repository_lifecycle::created_or_removed_repository;
use crate::syscall_effects::{self, ExecutedProgram, PathArgument, PathChange, PathState, SyscallEffect};
use crate::{DETACHED, seccomp_probe};

/// What is to be done about a call.
#[derive(Debug)]
pub enum SyscallVerdict {
    Allow,
    Fail(Errno),
    /// What the call means cannot be read, so it fails.
    Unreadable(Errno),
    /// Where the name leads cannot be seen, so it fails.
    Unfollowed(Errno),
    AcquireFirst(FileChanges),
    /// Git is about to change many files at once.
    Git(ExecutedProgram),
    /// Somebody who is watched wants to start the server, which must not be watched.
    StartServer,
}

#[derive(Debug, Default)]
pub struct FileChanges {
    pub files: Vec<FileChange>,
    /// Folders get another name, and with them all that is in them.
    pub moved: Vec<(PathBuf, PathBuf)>,
    /// Folders that become a repository, or are none any more.
    pub changed_repositories: Vec<PathBuf>,
}

impl FileChanges {
    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.moved.is_empty() && self.changed_repositories.is_empty()
    }
}

#[derive(Debug, Clone)]
pub struct FileChange {
    pub path: PathBuf,
    /// Whether it is what a link of this name leads to.
    pub follows: bool,
    pub change: PathChange,
    /// Whether it is somebody's at all.
    pub requirement: LeaseRequirement,
    /// Whether it is objected to if it changed before it was got.
    pub denies_stale: bool,
}

impl FileChange {
    /// A file that only must not be somebody else's.
    pub fn without_content_change(path: PathBuf) -> Self {
        Self {
            path,
            follows: false,
            change: PathChange::Touched,
            requirement: LeaseRequirement::Required,
            denies_stale: false,
        }
    }
}

/// What is to be done about this call.
pub fn evaluate(watched: &SupervisorState, call: &Notification) -> SyscallVerdict {
    // A number that the filter does not tell, or a process that we cannot see: nobody knows what it does.
    let (Some(kind), 1..) = (call.call, call.thread) else { return SyscallVerdict::Fail(Errno::PERM) };
    match syscall_effects::decode_effect(kind, &call.arguments, &ProcessMemory::of_thread(call.thread)) {
        Ok(SyscallEffect::Nothing) => SyscallVerdict::Allow,
        Ok(SyscallEffect::Changes(names)) => changes(watched, (kind, call.thread), &names),
        Ok(SyscallEffect::Executes(program)) => executes(watched, call.thread, program),
        // What the system says of such a call, too.
        Err(error) if matches!(errno(&error), Errno::FAULT | Errno::NAMETOOLONG) => {
            SyscallVerdict::Fail(errno(&error))
        }
        Err(error) => SyscallVerdict::Unreadable(errno(&error)),
    }
}

fn executes(watched: &SupervisorState, thread: u32, program: ExecutedProgram) -> SyscallVerdict {
    watched.attribution.record_exec(&program);
    watched.attribution.forget_thread(thread);
    let is = |place: usize, word: &str| program.arguments.get(place).is_some_and(|found| found == word);
    if is(0, "tenure") && is(1, DETACHED) {
        return SyscallVerdict::StartServer;
    }
    if is(0, "tenure") && is(1, seccomp_probe::PROBE_ARGUMENT) {
        return SyscallVerdict::Fail(seccomp_probe::GUARDED_ERRNO);
    }
    if program.may_be_git() && changes_many_files(&program.arguments) {
        SyscallVerdict::Git(program)
    } else {
        SyscallVerdict::Allow
    }
}

fn changes(
    watched: &SupervisorState,
    (call, thread): (Syscall, u32),
    names: &[PathArgument],
) -> SyscallVerdict {
    let owner = watched.attribution.owner_of(thread);
    let mut changes = FileChanges::default();
    let mut seen = Vec::with_capacity(names.len());
    for name in names {
        // What it has open for writing already, it may open once more by that very descriptor.
        if syscall_effects::is_own_writable_descriptor(thread, name) {
            seen.push(PathState::NotLeasable);
            continue;
        }
        let found = match syscall_effects::absolute_path(thread, name) {
            Ok(Some(path)) => syscall_effects::look_up(&path, name.follows),
            Ok(None) => Ok(PathState::NotLeasable),
            Err(error) if matches!(errno(&error), Errno::ACCESS | Errno::PERM) => {
                return SyscallVerdict::Unreadable(errno(&error));
            }
            Err(error) => return SyscallVerdict::Fail(errno(&error)),
        };
        match found {
            Ok(found) => seen.push(found),
            Err(Errno::LOOP) => return SyscallVerdict::Unfollowed(Errno::LOOP),
            Err(error) => return SyscallVerdict::Fail(error),
        }
    }
    if let ([one, other], [first, second]) = (&seen[..], names)
        && first.change == PathChange::Moved
    {
        let is_exchange = second.change == PathChange::Moved;
        for (from, to, is_moved) in [(one, other, true), (other, one, is_exchange)] {
            match (from, path_of(to)) {
                (PathState::Folder { path: from }, Some(to)) if is_moved => {
                    changes.moved.push((from.clone(), to.to_path_buf()));
                }
                // Where it would go cannot be said.
                (PathState::Folder { .. }, None) if is_moved => return SyscallVerdict::Fail(Errno::BUSY),
                _ => {}
            }
        }
    }
    // The name that a folder gets is no file.
    let is_folder_moved = !changes.moved.is_empty();
    for (name, seen) in names.iter().zip(seen) {
        let turned = created_or_removed_repository(call, name, &seen, || is_git(thread));
        changes
            .changed_repositories
            .extend(turned.filter(|folder| !watched.scope.can_change_repository(owner, folder)));
        let (path, has_links, is_free) = match seen {
            // What is there stays as it is.
            PathState::File { .. } if name.change == PathChange::Ensured => continue,
            PathState::File { path, link_count: names } => (path, names > 1, false),
            PathState::Missing { .. } if is_folder_moved => continue,
            PathState::Missing { path } => (path, false, true),
            // What becomes of a folder itself harms nobody, and the rest is no file.
            PathState::Folder { .. } | PathState::NotLeasable => continue,
        };
        // A file with several names may have been got by another one: that only the server can tell.
        if !has_links && watched.may(owner, &path, name.change) {
            continue;
        }
        if call.is_open() && !is_free {
            watched.scope.unmark_temporary(&path);
        }
        let belongs = watched.scope.lease_requirement(&path, name.change, is_free);
        let passes = match &belongs {
            LeaseRequirement::NotRequired => true,
            LeaseRequirement::Ignored(tree) => watched.is_unheld(&tree.root, &path),
            LeaseRequirement::Required | LeaseRequirement::Unknown(_) => false,
        };
        if !passes {
            let (follows, change) = (name.follows, name.change);
            changes.files.push(FileChange {
                path,
                follows,
                change,
                requirement: belongs,
                denies_stale: true,
            });
        }
    }
    if changes.is_empty() { SyscallVerdict::Allow } else { SyscallVerdict::AcquireFirst(changes) }
}

/// Whether this thread is git's, by what it calls itself.
fn is_git(thread: u32) -> bool {
    std::fs::read(format!("/proc/{thread}/comm")).is_ok_and(|name| name.starts_with(b"git"))
}

fn path_of(seen: &PathState) -> Option<&Path> {
    match seen {
        PathState::File { path, .. } | PathState::Folder { path } | PathState::Missing { path } => Some(path),
        PathState::NotLeasable => None,
    }
}

/// What the caller is told if we cannot look: never yes.
fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::PERM, Errno::from_raw_os_error)
}

impl SupervisorState {
    /// Whether it is known that no session holds this file of this tree.
    fn is_unheld(&self, root: &Path, path: &Path) -> bool {
        self.grants.lock().is_known_unheld(root, path)
    }

    /// Whether this owner may do that without asking: its grant is still good, and nothing is to be objected.
    fn may(&self, owner: CallOwner, path: &Path, change: PathChange) -> bool {
        let granted = self.grants.lock();
        granted.holds(owner, path)
            && !(change == PathChange::Lost && granted.has_stale_content(owner, path, now()))
    }
}

pub fn utf8_path(path: &Path) -> Result<String, OsString> {
    path.to_str().map(str::to_owned).ok_or_else(|| path.as_os_str().to_owned())
}
