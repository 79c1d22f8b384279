//! What changed and is not judged yet.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tenure_core::kernel::{Holder, ProcessId};
use tenure_gate::watch::{ChangeKind, TreeChange};

/// The most that waits to be judged. What is beyond is counted.
const MAX_CHANGES: usize = 20_000;
/// The most of those who have one file open that are remembered.
const MAX_WRITERS: usize = 4;

/// Changes by their path, below the root.
#[derive(Debug, Default)]
pub(super) struct PendingChanges {
    changes: BTreeMap<PathBuf, PendingChange>,
    round: u64,
    /// So many were never judged.
    pub(super) dropped: u64,
}

/// What happened to one name since it was last judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingChange {
    first: ChangeKind,
    pub(super) last: ChangeKind,
    /// Whether git was at work for the whole tree, all the while.
    pub(super) by_git: bool,
    /// Who had it open for writing.
    pub(super) writers: Vec<Arc<ObservedWriter>>,
    round: u64,
    is_uninspected: bool,
}

/// Somebody who had a file open for writing, as it was seen then: it may be gone by now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ObservedWriter {
    pub(super) pid: u32,
    pub(super) name: String,
    /// The process and all above it.
    pub(super) ancestry: Vec<ProcessId>,
    /// Of that, the one that is right below whoever takes in those that have lost their parents: who started it is not known, but that
    /// it was after the one who did.
    pub(super) reparented: Option<ProcessId>,
    /// In whose name it runs, if a session of an agent is known for it.
    pub(super) session: Option<Holder>,
}

impl PendingChange {
    /// Whether it came and went again, and nothing that was there before is lost: a file that somebody wrote to rename it.
    pub(super) fn is_transient(&self) -> bool {
        self.first == ChangeKind::Created && self.last == ChangeKind::Removed
    }
}

impl PendingChanges {
    pub(super) fn add(&mut self, changes: impl IntoIterator<Item = TreeChange>) {
        for TreeChange { path, kind, by_git } in changes {
            if let Some(noted) = self.changes.get_mut(&path) {
                noted.last = kind;
                noted.by_git &= by_git;
                noted.is_uninspected |= noted.writers.is_empty();
            } else if self.changes.len() < MAX_CHANGES {
                let round = self.round;
                let new_change = PendingChange {
                    first: kind,
                    last: kind,
                    by_git,
                    writers: Vec::new(),
                    round,
                    is_uninspected: true,
                };
                self.changes.insert(path, new_change);
            } else {
                self.dropped += 1;
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Begins a round: which paths changed since it was last looked who has them open.
    pub(super) fn begin_round(&mut self, max_paths: usize) -> Vec<PathBuf> {
        self.round += 1;
        let new = self.changes.iter_mut().filter(|(_, noted)| noted.is_uninspected).take(max_paths);
        let begin = |(path, noted): (&PathBuf, &mut PendingChange)| {
            noted.is_uninspected = false;
            path.clone()
        };
        new.map(begin).collect()
    }

    /// Somebody has this open for writing.
    pub(super) fn add_writer(&mut self, path: &PathBuf, writer: Arc<ObservedWriter>) {
        if let Some(noted) = self.changes.get_mut(path).filter(|noted| noted.writers.len() < MAX_WRITERS) {
            noted.writers.push(writer);
        }
    }

    /// Takes what was noted before the round began.
    pub(super) fn take_previous_rounds(&mut self) -> Vec<(PathBuf, PendingChange)> {
        let round = self.round;
        self.changes.extract_if(.., |_, noted| noted.round < round).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, kind: ChangeKind, by_git: bool) -> TreeChange {
        TreeChange { path: path.into(), kind, by_git }
    }

    #[test]
    fn a_file_created_and_removed_again_is_transient() {
        let mut pending = PendingChanges::default();
        let changes = [
            ("new", ChangeKind::Created),
            ("new", ChangeKind::Written),
            ("new", ChangeKind::Removed),
            ("old", ChangeKind::Removed),
            ("old", ChangeKind::Created),
            ("old", ChangeKind::Removed),
            ("stays", ChangeKind::Created),
        ];
        pending.add(changes.map(|(path, kind)| change(path, kind, false)));
        pending.begin_round(10);
        let gone: Vec<_> = pending
            .take_previous_rounds()
            .into_iter()
            .map(|(path, noted)| (path, noted.is_transient()))
            .collect();
        assert_eq!(gone, [("new".into(), true), ("old".into(), false), ("stays".into(), false)]);
    }

    #[test]
    fn changes_added_during_a_round_are_judged_in_the_next_one() {
        let mut pending = PendingChanges::default();
        pending.add([change("a", ChangeKind::Written, true), change("b", ChangeKind::Written, true)]);
        assert_eq!(pending.begin_round(10), [PathBuf::from("a"), "b".into()]);
        pending.add([change("b", ChangeKind::Written, false), change("c", ChangeKind::Created, false)]);
        let settled = pending.take_previous_rounds();
        let by_git: Vec<_> = settled.iter().map(|(path, noted)| (&**path, noted.by_git)).collect();
        assert_eq!(by_git, [("a".as_ref(), true), ("b".as_ref(), false)]);
        assert!(!pending.is_empty());
        assert_eq!(pending.begin_round(10), [PathBuf::from("c")]);
        assert_eq!(pending.take_previous_rounds().len(), 1);
        assert!(pending.is_empty());
    }

    #[test]
    fn changes_above_the_limit_are_counted_and_dropped() {
        let mut pending = PendingChanges::default();
        pending
            .add((0..MAX_CHANGES + 7).map(|number| change(&number.to_string(), ChangeKind::Created, false)));
        assert_eq!((pending.changes.len(), pending.dropped), (MAX_CHANGES, 7));
    }
}
