//! Folders that are moved, with all that is in them.
//!
//! The system tells a move as a leaving and an arriving. What happens in the folder afterwards is told right behind, and may have
//! happened before anybody looks: what is in the folder by then need not have been in it when it was moved.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::inotify_event::{InotifyEventKind, classify_event};
use super::tree_watch::TreeWatch;
use super::walk::watchable_folders;
use super::{ChangeKind, WatchBatch};

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
