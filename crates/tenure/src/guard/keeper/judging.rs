//! What is to be done about a call: most can be answered at once, without asking anybody.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use tenure_client::boot_microseconds as now;
use tenure_gate::calls::{self, Change, Does, Name, Program, Seen};
use tenure_gate::git::changes_many;
use tenure_seccomp::{Call, Memory, Notification};

use super::Watched;
use super::owners::Owner;
use super::repositories::turned;
use super::scope::Belongs;
use crate::daemon;
use crate::guard::inside;

/// What is to be done about a call.
#[derive(Debug)]
pub enum Judgement {
    Pass,
    Fail(Errno),
    /// What the call means cannot be read, so it fails.
    Unreadable(Errno),
    /// Where the name leads cannot be seen, so it fails.
    Unfollowed(Errno),
    Ask(Wants),
    /// Git is about to change many files at once.
    Git(Program),
    /// Somebody who is watched wants to start the server, which must not be watched.
    StartServer,
}

#[derive(Debug, Default)]
pub struct Wants {
    pub files: Vec<Want>,
    /// Folders get another name, and with them all that is in them.
    pub moved: Vec<(PathBuf, PathBuf)>,
    /// Folders that become a repository, or are none any more.
    pub turned: Vec<PathBuf>,
}

impl Wants {
    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.moved.is_empty() && self.turned.is_empty()
    }
}

#[derive(Debug, Clone)]
pub struct Want {
    pub path: PathBuf,
    /// Whether it is what a link of this name leads to.
    pub follows: bool,
    pub change: Change,
    /// Whether it is somebody's at all.
    pub belongs: Belongs,
    /// Whether it is objected to if it changed before it was got.
    pub objects: bool,
}

impl Want {
    /// A file that only must not be somebody else's.
    pub fn untouched(path: PathBuf) -> Self {
        Self { path, follows: false, change: Change::Touched, belongs: Belongs::ToTree, objects: false }
    }
}

/// What is to be done about this call.
pub fn judge(watched: &Watched, call: &Notification) -> Judgement {
    // A number that the filter does not tell, or a process that we cannot see: nobody knows what it does.
    let (Some(kind), 1..) = (call.call, call.thread) else { return Judgement::Fail(Errno::PERM) };
    match calls::read(kind, &call.arguments, &Memory::of(call.thread)) {
        Ok(Does::Nothing) => Judgement::Pass,
        Ok(Does::Changes(names)) => changes(watched, (kind, call.thread), &names),
        Ok(Does::Executes(program)) => executes(watched, call.thread, program),
        // What the system says of such a call, too.
        Err(error) if matches!(errno(&error), Errno::FAULT | Errno::NAMETOOLONG) => {
            Judgement::Fail(errno(&error))
        }
        Err(error) => Judgement::Unreadable(errno(&error)),
    }
}

fn executes(watched: &Watched, thread: u32, program: Program) -> Judgement {
    watched.owners.executes(&program);
    watched.owners.forget(thread);
    let is = |place: usize, word: &str| program.arguments.get(place).is_some_and(|found| found == word);
    if is(0, "tenure") && is(1, daemon::DETACHED) {
        return Judgement::StartServer;
    }
    if is(0, "tenure") && is(1, inside::QUESTION) {
        return Judgement::Fail(inside::YES);
    }
    if program.may_be_git() && changes_many(&program.arguments) {
        Judgement::Git(program)
    } else {
        Judgement::Pass
    }
}

fn changes(watched: &Watched, (call, thread): (Call, u32), names: &[Name]) -> Judgement {
    let owner = watched.owners.of(thread);
    let mut wants = Wants::default();
    let mut seen = Vec::with_capacity(names.len());
    for name in names {
        // What it has open for writing already, it may open once more by that very descriptor.
        if calls::is_own_open(thread, name) {
            seen.push(Seen::Nothing);
            continue;
        }
        let found = match calls::whole(thread, name) {
            Ok(Some(path)) => calls::look(&path, name.follows),
            Ok(None) => Ok(Seen::Nothing),
            Err(error) if matches!(errno(&error), Errno::ACCESS | Errno::PERM) => {
                return Judgement::Unreadable(errno(&error));
            }
            Err(error) => return Judgement::Fail(errno(&error)),
        };
        match found {
            Ok(found) => seen.push(found),
            Err(Errno::LOOP) => return Judgement::Unfollowed(Errno::LOOP),
            Err(error) => return Judgement::Fail(error),
        }
    }
    if let ([one, other], [first, second]) = (&seen[..], names)
        && first.change == Change::Moved
    {
        let is_exchange = second.change == Change::Moved;
        for (from, to, is_moved) in [(one, other, true), (other, one, is_exchange)] {
            match (from, path_of(to)) {
                (Seen::Folder { path: from }, Some(to)) if is_moved => {
                    wants.moved.push((from.clone(), to.to_path_buf()));
                }
                // Where it would go cannot be said.
                (Seen::Folder { .. }, None) if is_moved => return Judgement::Fail(Errno::BUSY),
                _ => {}
            }
        }
    }
    // The name that a folder gets is no file.
    let is_folder_moved = !wants.moved.is_empty();
    for (name, seen) in names.iter().zip(seen) {
        let turned = turned(call, name, &seen, || is_git(thread));
        wants.turned.extend(turned.filter(|folder| !watched.scope.may_turn(owner, folder)));
        let (path, has_links, is_free) = match seen {
            // What is there stays as it is.
            Seen::File { .. } if name.change == Change::Ensured => continue,
            Seen::File { path, names } => (path, names > 1, false),
            Seen::Free { .. } if is_folder_moved => continue,
            Seen::Free { path } => (path, false, true),
            // What becomes of a folder itself harms nobody, and the rest is no file.
            Seen::Folder { .. } | Seen::Nothing => continue,
        };
        // A file with several names may have been got by another one: that only the server can tell.
        if !has_links && watched.may(owner, &path, name.change) {
            continue;
        }
        if call.opens() && !is_free {
            watched.scope.opened_again(&path);
        }
        let belongs = watched.scope.belongs(&path, name.change, is_free);
        let passes = match &belongs {
            Belongs::ToNobody => true,
            Belongs::Ignored(tree) => watched.is_unheld(&tree.root, &path),
            Belongs::ToTree | Belongs::Unknown(_) => false,
        };
        if !passes {
            let (follows, change) = (name.follows, name.change);
            wants.files.push(Want { path, follows, change, belongs, objects: true });
        }
    }
    if wants.is_empty() { Judgement::Pass } else { Judgement::Ask(wants) }
}

/// Whether this thread is git's, by what it calls itself.
fn is_git(thread: u32) -> bool {
    std::fs::read(format!("/proc/{thread}/comm")).is_ok_and(|name| name.starts_with(b"git"))
}

fn path_of(seen: &Seen) -> Option<&Path> {
    match seen {
        Seen::File { path, .. } | Seen::Folder { path } | Seen::Free { path } => Some(path),
        Seen::Nothing => None,
    }
}

/// What the caller is told if we cannot look: never yes.
fn errno(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::PERM, Errno::from_raw_os_error)
}

impl Watched {
    /// Whether it is known that no session holds this file of this tree.
    fn is_unheld(&self, root: &Path, path: &Path) -> bool {
        self.granted.lock().is_unheld(root, path)
    }

    /// Whether this owner may do that without asking: its grant is still good, and nothing is to be objected.
    fn may(&self, owner: Owner, path: &Path, change: Change) -> bool {
        let granted = self.granted.lock();
        granted.holds(owner, path) && !(change == Change::Lost && granted.is_objected(owner, path, now()))
    }
}

pub fn text(path: &Path) -> Result<String, OsString> {
    path.to_str().map(str::to_owned).ok_or_else(|| path.as_os_str().to_owned())
}
