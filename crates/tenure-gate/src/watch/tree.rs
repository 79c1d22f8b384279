//! One working tree that is watched: the shell around what events mean.

use std::collections::VecDeque;
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
/// So many are understood before anybody is told: whoever moves folders all the time is heard all the time.
const MOST_TAKEN: usize = 4 * MOST_EVENTS;
/// The most that is told of what was found in new folders at once. The rest counts as missed.
const MOST_FOUND: usize = 20_000;
/// What git locks before it changes the whole tree.
const LOCK: &str = "index.lock";

/// A working tree that is watched, with every folder in it but git's own, those that git ignores, and trees of their own.
#[derive(Debug)]
pub struct TreeWatch {
    pub(super) root: PathBuf,
    git_dir: PathBuf,
    inotify: OwnedFd,
    pub(super) folders: Folders,
    most_folders: usize,
    coverage: Coverage,
    /// The number of git's folder, if that is watched.
    git: Option<i32>,
    is_git_at_work: bool,
    /// A folder that was moved away, and perhaps only to another place in the tree: what the system calls the move, and where it
    /// was.
    pub(super) moving: Option<(u32, PathBuf)>,
    /// What was read and is not understood yet.
    pub(super) ahead: VecDeque<Event>,
    /// Whether nothing more was there to be read.
    is_drained: bool,
    is_over: bool,
}

/// An event as the system tells it.
#[derive(Debug)]
pub(super) struct Event {
    pub number: i32,
    pub flags: ReadFlags,
    pub cookie: u32,
    pub name: OsString,
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
            ahead: VecDeque::new(),
            is_drained: true,
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
        let mut seen = Seen::default();
        self.look_ahead();
        for _ in 0..MOST_TAKEN {
            let Some(event) = self.ahead.pop_front() else { break };
            if self.git == Some(event.number) && event.name == LOCK {
                self.is_git_at_work = git_is_at_work(event.flags).unwrap_or(self.is_git_at_work);
            }
            self.take(&event, &mut seen);
        }
        seen.is_drained = self.is_drained && self.ahead.is_empty();
        if seen.is_drained {
            self.settle_move(&mut seen);
        }
        seen.is_over = self.is_over;
        seen
    }

    /// Reads what the system has to tell by now. Not more than so much at once: whoever does not stop is heard in parts.
    pub(super) fn look_ahead(&mut self) {
        let mut buffer = vec![MaybeUninit::uninit(); 64 << 10];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        self.is_drained = loop {
            if self.ahead.len() >= MOST_EVENTS && reader.is_buffer_empty() {
                break false;
            }
            match reader.next() {
                Ok(event) => self.ahead.push_back(Event {
                    number: event.wd(),
                    flags: event.events(),
                    cookie: event.cookie(),
                    name: event
                        .file_name()
                        .map_or_else(OsString::new, |name| OsStr::from_bytes(name.to_bytes()).to_owned()),
                }),
                Err(Errno::INTR) => {}
                // Nothing more for now. Any other error would come again, and is no reason to end.
                Err(_) => break true,
            }
        };
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
            Meaning::FolderLeft => self.leaves(path, event.cookie),
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

    pub(super) fn tell(&self, path: PathBuf, kind: Kind, seen: &mut Seen) {
        if !is_gits_own(&path) {
            seen.changes.push(Change { path, kind, by_git: self.is_git_at_work });
        }
    }

    pub(super) fn tell_found(&mut self, found: Vec<PathBuf>, kind: Kind, seen: &mut Seen) {
        let beyond = found.len().saturating_sub(MOST_FOUND);
        self.coverage.missed += u64::try_from(beyond).unwrap_or(u64::MAX);
        found.into_iter().take(MOST_FOUND).for_each(|path| self.tell(path, kind, seen));
    }

    /// Watches a new folder and all below it, and says which files are in them.
    pub(super) fn find(&mut self, folder: PathBuf) -> Vec<PathBuf> {
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

    pub(super) fn leave(&mut self, folder: &Path) {
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
