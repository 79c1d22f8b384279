//! Folders that are moved, with all that is in them.
//!
//! The system tells a move as a leaving and an arriving. What happens in the folder afterwards is told right behind, and may have
//! happened before anybody looks: what is in the folder by then need not have been in it when it was moved.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::meaning::{Meaning, meaning};
use super::tree::TreeWatch;
use super::walk::to_be_watched;
use super::{Kind, Seen};

impl TreeWatch {
    /// A folder was moved away from here. What was ignored there is nobody's.
    pub(super) fn leaves(&mut self, path: PathBuf, cookie: u32) {
        let is_watched = self.folders.knows(&path);
        // The arriving may come a moment later.
        if is_watched && !self.will_arrive(cookie) {
            self.look_ahead();
        }
        if !self.will_arrive(cookie) {
            self.leave(&path);
        }
        self.moving = is_watched.then_some((cookie, path));
    }

    fn will_arrive(&self, cookie: u32) -> bool {
        let mut arriving = self.ahead.iter().filter(|event| meaning(event.flags) == Meaning::FolderArrived);
        arriving.any(|event| event.cookie == cookie && self.folders.path(event.number).is_some())
    }

    /// A folder was moved to here. If it was watched before, all in it has lost its old name too.
    pub(super) fn arrives(&mut self, path: PathBuf, cookie: u32, seen: &mut Seen) {
        let from = self.moving.take_if(|(moved, _)| *moved == cookie).map(|(_, from)| from);
        self.settle_move(seen);
        if let Some(from) = &from {
            // It is watched on under its new name: what happened in it since is told under that.
            if to_be_watched(&self.root, vec![path.clone()]).is_empty() {
                self.leave(from);
            } else {
                self.folders.rename(from, &path);
            }
        }
        let mut found = self.find(path.clone());
        let is_here = self.folders.knows(&path) && self.root.join(&path).symlink_metadata().is_ok();
        match from {
            Some(from) if is_here => {
                let since = self.happened_since(&path);
                let is_new = |name: &Path| since.get(name) == Some(&true);
                // Each of these is told for itself.
                found.retain(|file| !file.ancestors().any(is_new));
                let gone = since.iter().filter(|(_, is_new)| !**is_new).map(|(name, _)| name);
                let old = found.iter().chain(gone);
                let old: BTreeSet<PathBuf> =
                    old.filter_map(|file| Some(from.join(file.strip_prefix(&path).ok()?))).collect();
                let old: Vec<PathBuf> = old.into_iter().collect();
                self.tell_found(old, Kind::Gone, seen);
            }
            Some(from) => self.tell(from, Kind::FolderGone, seen),
            None => {}
        }
        self.tell_found(found, Kind::Arrived, seen);
    }

    /// Which names came into this folder after it was moved, and which files were there and went: all of that was told by the time
    /// that the folder was looked into. What comes first says what was before.
    fn happened_since(&mut self, folder: &Path) -> HashMap<PathBuf, bool> {
        self.look_ahead();
        let mut first = HashMap::new();
        for event in &self.ahead {
            let is_new = match meaning(event.flags) {
                Meaning::Name(Kind::Made | Kind::Arrived) | Meaning::FolderMade | Meaning::FolderArrived => {
                    true
                }
                Meaning::Name(_) => false,
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
    pub(super) fn settle_move(&mut self, seen: &mut Seen) {
        if let Some((_, from)) = self.moving.take() {
            self.leave(&from);
            self.tell(from, Kind::FolderGone, seen);
        }
    }
}
