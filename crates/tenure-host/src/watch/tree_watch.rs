//! One watched working tree: the code around inotify.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, add_watch, init, remove_watch};
use rustix::fs::lstat;
use rustix::io::Errno;

use super::folders::{WatchedFolders, is_git_internal, list_folder, watchable_folders};
use super::inotify_event::{InotifyEventKind, WATCHED, WATCHED_OF_GIT, classify_event, index_lock_state};
use super::{ChangeKind, TreeChange, WatchBatch, WatchCoverage};
use crate::paths::WorkTree;

/// The most folders of one tree.
const MAX_FOLDERS: usize = 50_000;
/// The system has a limit for all programs of a user together, and others want to watch too: one tree takes no more than this part.
const LIMIT_SHARE: usize = 8;
/// About so many events are taken at once.
const MAX_PENDING_EVENTS: usize = 8_192;
/// So many are understood before anybody is told: whoever moves folders all the time is heard all the time.
const MAX_EVENTS_PER_READ: usize = 4 * MAX_PENDING_EVENTS;
/// The most that is told of what was found in new folders at once. The rest counts as missed.
const MAX_FOUND_FILES: usize = 20_000;
/// What git locks before it changes the whole tree.
const INDEX_LOCK: &str = "index.lock";

/// A working tree that is watched, with every folder in it but git's own, those that git ignores, and trees of their own.
#[derive(Debug)]
pub struct TreeWatch {
    pub(super) root: PathBuf,
    git_dir: PathBuf,
    inotify: OwnedFd,
    pub(super) folders: WatchedFolders,
    max_folders: usize,
    coverage: WatchCoverage,
    /// The number of git's folder, if that is watched.
    git_watch: Option<i32>,
    is_git_at_work: bool,
    /// A folder that was moved away, and perhaps only to another place in the tree: what the system calls the move, and where it
    /// was.
    pub(super) pending_move: Option<(u32, PathBuf)>,
    /// What was read and is not understood yet.
    pub(super) pending_events: VecDeque<InotifyEvent>,
    /// Whether nothing more was there to be read.
    is_drained: bool,
    is_root_gone: bool,
}

/// An event as the system tells it.
#[derive(Debug)]
pub(super) struct InotifyEvent {
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
        Self::open_with_limit(tree, limit.map_or(MAX_FOLDERS, |limit| MAX_FOLDERS.min(limit / LIMIT_SHARE)))
    }

    pub fn open_with_limit(tree: &WorkTree, max_folders: usize) -> io::Result<Self> {
        let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let mut watch = Self {
            root: tree.root.clone(),
            git_dir: tree.git_dir.clone(),
            inotify,
            folders: WatchedFolders::default(),
            max_folders,
            coverage: WatchCoverage::default(),
            git_watch: None,
            is_git_at_work: false,
            pending_move: None,
            pending_events: VecDeque::new(),
            is_drained: true,
            is_root_gone: false,
        };
        watch.rescan();
        Ok(watch)
    }

    /// How much of the tree is watched.
    pub fn coverage(&self) -> WatchCoverage {
        WatchCoverage { folders: self.folders.len(), ..self.coverage }
    }

    /// Walks through the tree again, and watches what is not watched yet and can be by now.
    pub fn rescan(&mut self) {
        self.coverage = WatchCoverage { missed: self.coverage.missed, ..WatchCoverage::default() };
        // First, so that what git does while the tree is walked through is known to be git's.
        self.git_watch = add_watch(&self.inotify, &self.git_dir, WATCHED_OF_GIT).ok();
        self.is_git_at_work = lstat(self.git_dir.join(INDEX_LOCK)).is_ok();
        self.watch_folders(vec![PathBuf::new()], &mut None);
    }

    /// Reads what happened. It does not wait; where there are new folders, it looks into them.
    pub fn read(&mut self) -> WatchBatch {
        let mut seen = WatchBatch::default();
        self.read_pending_events();
        for _ in 0..MAX_EVENTS_PER_READ {
            let Some(event) = self.pending_events.pop_front() else { break };
            if self.git_watch == Some(event.number) && event.name == INDEX_LOCK {
                self.is_git_at_work = index_lock_state(event.flags).unwrap_or(self.is_git_at_work);
            }
            self.handle_event(&event, &mut seen);
        }
        seen.is_drained = self.is_drained && self.pending_events.is_empty();
        if seen.is_drained {
            self.finish_pending_move(&mut seen);
        }
        seen.is_root_gone = self.is_root_gone;
        seen
    }

    /// Reads what the system has to tell by now. Not more than so much at once: whoever does not stop is heard in parts.
    pub(super) fn read_pending_events(&mut self) {
        let mut buffer = vec![MaybeUninit::uninit(); 64 << 10];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        self.is_drained = loop {
            if self.pending_events.len() >= MAX_PENDING_EVENTS && reader.is_buffer_empty() {
                break false;
            }
            match reader.next() {
                Ok(event) => self.pending_events.push_back(InotifyEvent {
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

    fn handle_event(&mut self, event: &InotifyEvent, seen: &mut WatchBatch) {
        let meaning = classify_event(event.flags);
        if meaning == InotifyEventKind::QueueOverflow {
            self.coverage.missed += 1;
            self.rescan();
            return;
        }
        // What is not known any more was moved away, or is git's.
        let Some(folder) = self.folders.path(event.number) else { return };
        let path = folder.join(&event.name);
        let is_root = folder.as_os_str().is_empty();
        if !matches!(meaning, InotifyEventKind::Name(_) | InotifyEventKind::FolderMovedIn) {
            self.finish_pending_move(seen);
        }
        match meaning {
            InotifyEventKind::Name(kind) => self.push_change(path, kind, seen),
            InotifyEventKind::FolderCreated => {
                let found = self.watch_new_folder(path);
                self.push_found_files(found, ChangeKind::Created, seen);
            }
            InotifyEventKind::FolderMovedIn => self.handle_moved_in(path, event.cookie, seen),
            InotifyEventKind::FolderMovedOut => self.handle_moved_out(path, event.cookie),
            InotifyEventKind::WatchedFolderGone if is_root => {
                self.unwatch_folder(Path::new(""));
                self.is_root_gone = true;
            }
            InotifyEventKind::WatchEnded => {
                self.folders.remove(event.number);
                self.is_root_gone |= is_root;
            }
            InotifyEventKind::WatchedFolderGone
            | InotifyEventKind::QueueOverflow
            | InotifyEventKind::Nothing => {}
        }
    }

    pub(super) fn push_change(&self, path: PathBuf, kind: ChangeKind, seen: &mut WatchBatch) {
        if !is_git_internal(&path) {
            seen.changes.push(TreeChange { path, kind, by_git: self.is_git_at_work });
        }
    }

    pub(super) fn push_found_files(&mut self, found: Vec<PathBuf>, kind: ChangeKind, seen: &mut WatchBatch) {
        let beyond = found.len().saturating_sub(MAX_FOUND_FILES);
        self.coverage.missed += u64::try_from(beyond).unwrap_or(u64::MAX);
        found.into_iter().take(MAX_FOUND_FILES).for_each(|path| self.push_change(path, kind, seen));
    }

    /// Watches a new folder and all below it, and says which files are in them.
    pub(super) fn watch_new_folder(&mut self, folder: PathBuf) -> Vec<PathBuf> {
        let mut files = Some(Vec::new());
        self.watch_folders(vec![folder], &mut files);
        files.unwrap_or_default()
    }

    /// Watches these folders and all below them. Each is watched before it is looked into: what comes meanwhile is told twice
    /// rather than not at all.
    fn watch_folders(&mut self, folders: Vec<PathBuf>, files: &mut Option<Vec<PathBuf>>) {
        let mut level = folders;
        // One question to git for each level.
        while !level.is_empty() {
            let mut below = Vec::new();
            for folder in watchable_folders(&self.root, level) {
                self.add_folder_watch(&folder);
                match list_folder(&self.root, &folder) {
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

    fn add_folder_watch(&mut self, folder: &Path) {
        if self.folders.len() >= self.max_folders && !self.folders.contains(folder) {
            self.coverage.beyond_limit += 1;
            return;
        }
        match add_watch(&self.inotify, self.root.join(folder), WATCHED) {
            Ok(number) => self.folders.insert(number, folder),
            Err(Errno::NOSPC | Errno::NOMEM) => self.coverage.beyond_limit += 1,
            // It is gone, or no folder any more; what may not be read is counted by who tries to.
            Err(_) => {}
        }
    }

    pub(super) fn unwatch_folder(&mut self, folder: &Path) {
        for number in self.folders.remove_below(folder) {
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

impl TreeWatch {
    /// A folder was moved away from here. What was ignored there is nobody's.
    pub(super) fn handle_moved_out(&mut self, path: PathBuf, cookie: u32) {
        let is_watched = self.folders.contains(&path);
        // The arriving may come a moment later.
        if is_watched && !self.is_moved_within_tree(cookie) {
            self.read_pending_events();
        }
        if !self.is_moved_within_tree(cookie) {
            self.unwatch_folder(&path);
        }
        self.pending_move = is_watched.then_some((cookie, path));
    }

    fn is_moved_within_tree(&self, cookie: u32) -> bool {
        let mut arriving = self
            .pending_events
            .iter()
            .filter(|event| classify_event(event.flags) == InotifyEventKind::FolderMovedIn);
        arriving.any(|event| event.cookie == cookie && self.folders.path(event.number).is_some())
    }

    /// A folder was moved to here. If it was watched before, all in it has lost its old name too.
    pub(super) fn handle_moved_in(&mut self, path: PathBuf, cookie: u32, seen: &mut WatchBatch) {
        let from = self.pending_move.take_if(|(moved, _)| *moved == cookie).map(|(_, from)| from);
        self.finish_pending_move(seen);
        if let Some(from) = &from {
            // It is watched on under its new name: what happened in it since is told under that.
            if watchable_folders(&self.root, vec![path.clone()]).is_empty() {
                self.unwatch_folder(from);
            } else {
                self.folders.rename(from, &path);
            }
        }
        let mut found = self.watch_new_folder(path.clone());
        let is_here = self.folders.contains(&path) && self.root.join(&path).symlink_metadata().is_ok();
        match from {
            Some(from) if is_here => {
                let since = self.changes_since_move(&path);
                let is_new = |name: &Path| since.get(name) == Some(&true);
                // Each of these is told for itself.
                found.retain(|file| !file.ancestors().any(is_new));
                let gone = since.iter().filter(|(_, is_new)| !**is_new).map(|(name, _)| name);
                let old = found.iter().chain(gone);
                let old: BTreeSet<PathBuf> =
                    old.filter_map(|file| Some(from.join(file.strip_prefix(&path).ok()?))).collect();
                let old: Vec<PathBuf> = old.into_iter().collect();
                self.push_found_files(old, ChangeKind::Removed, seen);
            }
            Some(from) => self.push_change(from, ChangeKind::FolderMovedOut, seen),
            None => {}
        }
        self.push_found_files(found, ChangeKind::MovedIn, seen);
    }

    /// Which names came into this folder after it was moved, and which files were there and went: all of that was told by the time
    /// that the folder was looked into. What comes first says what was before.
    fn changes_since_move(&mut self, folder: &Path) -> HashMap<PathBuf, bool> {
        self.read_pending_events();
        let mut first = HashMap::new();
        for event in &self.pending_events {
            let is_new = match classify_event(event.flags) {
                InotifyEventKind::Name(ChangeKind::Created | ChangeKind::MovedIn)
                | InotifyEventKind::FolderCreated
                | InotifyEventKind::FolderMovedIn => true,
                InotifyEventKind::Name(_) => false,
                _ => continue,
            };
            let above = self.folders.path(event.number).filter(|above| above.starts_with(folder));
            if let Some(above) = above {
                first.entry(above.join(&event.name)).or_insert(is_new);
            }
        }
        first
    }

    /// A folder that was moved away arrived nowhere.
    pub(super) fn finish_pending_move(&mut self, seen: &mut WatchBatch) {
        if let Some((_, from)) = self.pending_move.take() {
            self.unwatch_folder(&from);
            self.push_change(from, ChangeKind::FolderMovedOut, seen);
        }
    }
}
