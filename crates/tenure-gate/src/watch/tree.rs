//! One working tree that is watched: the shell around what events mean.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, add_watch, init, remove_watch};
use rustix::fs::lstat;
use rustix::io::Errno;

use super::folders::Folders;
use super::meaning::{Meaning, WATCHED, WATCHED_OF_GIT, git_is_at_work, meaning};
use super::walk::{is_gits_own, list, to_be_watched};
use super::{Change, Coverage, Kind, Seen};
use crate::paths::WorkTree;

/// The most folders of one tree.
const MOST_FOLDERS: usize = 50_000;
/// The system has a limit for all programs of a user together, and others want to watch too: one tree takes no more than this part.
const PART: usize = 8;
/// About so many events are taken at once.
const MOST_EVENTS: usize = 8_192;
/// The most that is told of what was found in new folders at once. The rest counts as missed.
const MOST_FOUND: usize = 20_000;
/// What git locks before it changes the whole tree.
const LOCK: &str = "index.lock";

/// A working tree that is watched, with every folder in it but git's own, those that git ignores, and trees of their own.
#[derive(Debug)]
pub struct TreeWatch {
    root: PathBuf,
    git_dir: PathBuf,
    inotify: OwnedFd,
    folders: Folders,
    most_folders: usize,
    coverage: Coverage,
    /// The number of git's folder, if that is watched.
    git: Option<i32>,
    is_git_at_work: bool,
    /// A folder that was moved away, and perhaps only to another place in the tree: what the system calls the move, and where it
    /// was.
    moving: Option<(u32, PathBuf)>,
    /// The root is gone.
    is_over: bool,
}

/// An event as the system tells it.
struct Event {
    number: i32,
    flags: ReadFlags,
    cookie: u32,
    name: OsString,
}

impl TreeWatch {
    /// Watches a tree from now on. It walks through all of it.
    ///
    /// An error only if this user may watch nothing more at all; what else cannot be watched is counted.
    pub fn open(tree: &WorkTree) -> io::Result<Self> {
        let limit = fs::read_to_string("/proc/sys/fs/inotify/max_user_watches").ok();
        let limit = limit.and_then(|limit| limit.trim().parse::<usize>().ok());
        Self::open_with(tree, limit.map_or(MOST_FOLDERS, |limit| MOST_FOLDERS.min(limit / PART)))
    }

    /// The same with another limit.
    pub fn open_with(tree: &WorkTree, most_folders: usize) -> io::Result<Self> {
        let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let mut watch = Self {
            root: tree.root.clone(),
            git_dir: tree.git_dir.clone(),
            inotify,
            folders: Folders::default(),
            most_folders,
            coverage: Coverage::default(),
            git: None,
            is_git_at_work: false,
            moving: None,
            is_over: false,
        };
        watch.look_again();
        Ok(watch)
    }

    /// How much of the tree is watched.
    pub fn coverage(&self) -> Coverage {
        Coverage { folders: self.folders.len(), ..self.coverage }
    }

    /// Walks through the tree again, and watches what is not watched yet and can be by now.
    pub fn look_again(&mut self) {
        self.coverage = Coverage { missed: self.coverage.missed, ..Coverage::default() };
        // First, so that what git does while the tree is walked through is known to be git's.
        self.git = add_watch(&self.inotify, &self.git_dir, WATCHED_OF_GIT).ok();
        self.is_git_at_work = lstat(self.git_dir.join(LOCK)).is_ok();
        self.enter(vec![PathBuf::new()], &mut None);
    }

    /// Reads what happened. It does not wait; where there are new folders, it looks into them.
    pub fn read(&mut self) -> Seen {
        let (events, is_drained) = self.events();
        let mut seen = Seen { is_drained, ..Seen::default() };
        for event in events {
            if self.git == Some(event.number) && event.name == LOCK {
                self.is_git_at_work = git_is_at_work(event.flags).unwrap_or(self.is_git_at_work);
            }
            self.take(&event, &mut seen);
        }
        if seen.is_drained {
            self.settle_move(&mut seen);
        }
        seen.is_over = self.is_over;
        seen
    }

    fn events(&self) -> (Vec<Event>, bool) {
        let mut events = Vec::new();
        let mut buffer = vec![MaybeUninit::uninit(); 64 << 10];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        loop {
            if events.len() >= MOST_EVENTS && reader.is_buffer_empty() {
                return (events, false);
            }
            match reader.next() {
                Ok(event) => events.push(Event {
                    number: event.wd(),
                    flags: event.events(),
                    cookie: event.cookie(),
                    name: event
                        .file_name()
                        .map_or_else(OsString::new, |name| OsStr::from_bytes(name.to_bytes()).to_owned()),
                }),
                Err(Errno::INTR) => {}
                // Nothing more for now. Any other error would come again, and is no reason to end.
                Err(_) => return (events, true),
            }
        }
    }

    fn take(&mut self, event: &Event, seen: &mut Seen) {
        let meaning = meaning(event.flags);
        if meaning == Meaning::Missed {
            self.coverage.missed += 1;
            self.look_again();
            return;
        }
        // What is not known any more was moved away, or is git's.
        let Some(folder) = self.folders.path(event.number) else { return };
        let path = folder.join(&event.name);
        let is_root = folder.as_os_str().is_empty();
        if !matches!(meaning, Meaning::Name(_) | Meaning::FolderArrived) {
            self.settle_move(seen);
        }
        match meaning {
            Meaning::Name(kind) => self.tell(path, kind, seen),
            Meaning::FolderMade => {
                let found = self.find(path);
                self.tell_found(found, Kind::Made, seen);
            }
            Meaning::FolderArrived => self.arrives(path, event.cookie, seen),
            Meaning::FolderLeft => {
                let is_watched = self.folders.knows(&path);
                self.leave(&path);
                // What was ignored there is nobody's.
                self.moving = is_watched.then_some((event.cookie, path));
            }
            Meaning::ItselfGone if is_root => {
                self.leave(Path::new(""));
                self.is_over = true;
            }
            Meaning::WatchEnded => {
                self.folders.forget(event.number);
                self.is_over |= is_root;
            }
            Meaning::ItselfGone | Meaning::Missed | Meaning::Nothing => {}
        }
    }

    /// A folder was moved to here. If it was watched before, all in it has lost its old name too.
    fn arrives(&mut self, path: PathBuf, cookie: u32, seen: &mut Seen) {
        let from = self.moving.take_if(|(moved, _)| *moved == cookie).map(|(_, from)| from);
        self.settle_move(seen);
        let found = self.find(path.clone());
        match from {
            Some(from) if self.folders.knows(&path) => {
                let old = found.iter().filter_map(|file| Some(from.join(file.strip_prefix(&path).ok()?)));
                let old: Vec<PathBuf> = old.collect();
                self.tell_found(old, Kind::Gone, seen);
            }
            Some(from) => self.tell(from, Kind::FolderGone, seen),
            None => {}
        }
        self.tell_found(found, Kind::Arrived, seen);
    }

    /// A folder that was moved away arrived nowhere.
    fn settle_move(&mut self, seen: &mut Seen) {
        if let Some((_, from)) = self.moving.take() {
            self.tell(from, Kind::FolderGone, seen);
        }
    }

    fn tell(&self, path: PathBuf, kind: Kind, seen: &mut Seen) {
        if !is_gits_own(&path) {
            seen.changes.push(Change { path, kind, by_git: self.is_git_at_work });
        }
    }

    fn tell_found(&mut self, found: Vec<PathBuf>, kind: Kind, seen: &mut Seen) {
        let beyond = found.len().saturating_sub(MOST_FOUND);
        self.coverage.missed += u64::try_from(beyond).unwrap_or(u64::MAX);
        found.into_iter().take(MOST_FOUND).for_each(|path| self.tell(path, kind, seen));
    }

    /// Watches a new folder and all below it, and says which files are in them.
    fn find(&mut self, folder: PathBuf) -> Vec<PathBuf> {
        let mut files = Some(Vec::new());
        self.enter(vec![folder], &mut files);
        files.unwrap_or_default()
    }

    /// Watches these folders and all below them. Each is watched before it is looked into: what comes meanwhile is told twice
    /// rather than not at all.
    fn enter(&mut self, folders: Vec<PathBuf>, files: &mut Option<Vec<PathBuf>>) {
        let mut level = folders;
        // One question to git for each level.
        while !level.is_empty() {
            let mut below = Vec::new();
            for folder in to_be_watched(&self.root, level) {
                self.place(&folder);
                match list(&self.root, &folder) {
                    Some(listed) => {
                        below.extend(listed.folders);
                        if let Some(files) = files {
                            files.extend(listed.files);
                        }
                    }
                    None if lstat(self.root.join(&folder)).is_ok() => self.coverage.unreadable += 1,
                    None => {}
                }
            }
            level = below;
        }
    }

    fn place(&mut self, folder: &Path) {
        if self.folders.len() >= self.most_folders && !self.folders.knows(folder) {
            self.coverage.beyond_limit += 1;
            return;
        }
        match add_watch(&self.inotify, self.root.join(folder), WATCHED) {
            Ok(number) => self.folders.enter(number, folder),
            Err(Errno::NOSPC | Errno::NOMEM) => self.coverage.beyond_limit += 1,
            // It is gone, or no folder any more; what may not be read is counted by who tries to.
            Err(_) => {}
        }
    }

    fn leave(&mut self, folder: &Path) {
        for number in self.folders.forget_below(folder) {
            // It may be gone already.
            let _ = remove_watch(&self.inotify, number);
        }
    }
}

impl AsFd for TreeWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}
