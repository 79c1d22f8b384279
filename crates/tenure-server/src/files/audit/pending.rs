//! What changed and is not judged yet.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use tenure_core::kernel::Holder;
use tenure_gate::process::Process;
use tenure_gate::watch::{Change, Kind};

/// The most that waits to be judged. What is beyond is counted.
const MOST: usize = 20_000;
/// The most of those who have one file open that are remembered.
const MOST_WRITERS: usize = 4;

/// Changes by their path, below the root.
#[derive(Debug, Default)]
pub(super) struct Pending {
    noted: BTreeMap<PathBuf, Noted>,
    round: u64,
    /// So many were never judged.
    pub(super) beyond: u64,
}

/// What happened to one name since it was last judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Noted {
    first: Kind,
    pub(super) last: Kind,
    /// Whether git was at work for the whole tree, all the while.
    pub(super) by_git: bool,
    /// Who had it open for writing.
    pub(super) writers: Vec<Arc<SeenWriter>>,
    round: u64,
    is_to_be_looked_at: bool,
}

/// Somebody who had a file open for writing, as it was seen then: it may be gone by now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SeenWriter {
    pub(super) pid: u32,
    pub(super) name: String,
    /// The process and all above it.
    pub(super) line: Vec<Process>,
    /// Of that, the one that is right below whoever takes in those that have lost their parents: who started it is not known, but that
    /// it was after the one who did.
    pub(super) adopted: Option<Process>,
    /// In whose name it runs, if a session of an agent is known for it.
    pub(super) session: Option<Holder>,
}

impl Noted {
    /// Whether it came and went again, and nothing that was there before is lost: a file that somebody wrote to rename it.
    pub(super) fn came_and_went(&self) -> bool {
        self.first == Kind::Made && self.last == Kind::Gone
    }
}

impl Pending {
    pub(super) fn note(&mut self, changes: impl IntoIterator<Item = Change>) {
        for Change { path, kind, by_git } in changes {
            if let Some(noted) = self.noted.get_mut(&path) {
                noted.last = kind;
                noted.by_git &= by_git;
                noted.is_to_be_looked_at |= noted.writers.is_empty();
            } else if self.noted.len() < MOST {
                let round = self.round;
                let fresh = Noted {
                    first: kind,
                    last: kind,
                    by_git,
                    writers: Vec::new(),
                    round,
                    is_to_be_looked_at: true,
                };
                self.noted.insert(path, fresh);
            } else {
                self.beyond += 1;
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.noted.is_empty()
    }

    /// Begins a round: which paths changed since it was last looked who has them open.
    pub(super) fn begin_round(&mut self, most: usize) -> Vec<PathBuf> {
        self.round += 1;
        let new = self.noted.iter_mut().filter(|(_, noted)| noted.is_to_be_looked_at).take(most);
        let begin = |(path, noted): (&PathBuf, &mut Noted)| {
            noted.is_to_be_looked_at = false;
            path.clone()
        };
        new.map(begin).collect()
    }

    /// Somebody has this open for writing.
    pub(super) fn is_open(&mut self, path: &PathBuf, writer: Arc<SeenWriter>) {
        if let Some(noted) = self.noted.get_mut(path).filter(|noted| noted.writers.len() < MOST_WRITERS) {
            noted.writers.push(writer);
        }
    }

    /// Takes what was noted before the round began.
    pub(super) fn take_settled(&mut self) -> Vec<(PathBuf, Noted)> {
        let round = self.round;
        self.noted.extract_if(.., |_, noted| noted.round < round).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, kind: Kind, by_git: bool) -> Change {
        Change { path: path.into(), kind, by_git }
    }

    #[test]
    fn a_file_created_and_removed_again_is_transient() {
        let mut pending = Pending::default();
        let changes = [
            ("new", Kind::Made),
            ("new", Kind::Written),
            ("new", Kind::Gone),
            ("old", Kind::Gone),
            ("old", Kind::Made),
            ("old", Kind::Gone),
            ("stays", Kind::Made),
        ];
        pending.note(changes.map(|(path, kind)| change(path, kind, false)));
        pending.begin_round(10);
        let gone: Vec<_> =
            pending.take_settled().into_iter().map(|(path, noted)| (path, noted.came_and_went())).collect();
        assert_eq!(gone, [("new".into(), true), ("old".into(), false), ("stays".into(), false)]);
    }

    #[test]
    fn changes_added_during_a_round_are_judged_in_the_next_one() {
        let mut pending = Pending::default();
        pending.note([change("a", Kind::Written, true), change("b", Kind::Written, true)]);
        assert_eq!(pending.begin_round(10), [PathBuf::from("a"), "b".into()]);
        pending.note([change("b", Kind::Written, false), change("c", Kind::Made, false)]);
        let settled = pending.take_settled();
        let by_git: Vec<_> = settled.iter().map(|(path, noted)| (&**path, noted.by_git)).collect();
        assert_eq!(by_git, [("a".as_ref(), true), ("b".as_ref(), false)]);
        assert!(!pending.is_empty());
        assert_eq!(pending.begin_round(10), [PathBuf::from("c")]);
        assert_eq!(pending.take_settled().len(), 1);
        assert!(pending.is_empty());
    }

    #[test]
    fn changes_above_the_limit_are_counted_and_dropped() {
        let mut pending = Pending::default();
        pending.note((0..MOST + 7).map(|number| change(&number.to_string(), Kind::Made, false)));
        assert_eq!((pending.noted.len(), pending.beyond), (MOST, 7));
    }
}
