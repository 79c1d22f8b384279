//! Which file has which name: now, and after a power cut.
//!
//! Changes that have a name in common happen one after the other, and of such a group any prefix may have reached
//! the platter. Groups know nothing of each other: a later change may be there while an earlier one of another
//! group is not. That is harder than ext4 or XFS, whose journals keep the order of all changes.

use std::collections::BTreeMap;

use super::rng::FaultRng;

/// What was done to names.
#[derive(Debug, Clone)]
pub(crate) enum DirectoryChange {
    /// A name is that of a new file.
    Created { name: String, file: u64 },
    /// A file has another name, in place of whatever had it.
    Renamed { from: String, to: String },
    /// A name is gone.
    Removed { name: String },
}

impl DirectoryChange {
    fn names(&self) -> Vec<&str> {
        match self {
            DirectoryChange::Created { name, .. } | DirectoryChange::Removed { name } => vec![name],
            DirectoryChange::Renamed { from, to } => vec![from, to],
        }
    }

    fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            DirectoryChange::Created { name, file } => {
                names.insert(name.clone(), *file);
            }
            DirectoryChange::Renamed { from, to } => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            DirectoryChange::Removed { name } => {
                names.remove(name);
            }
        }
    }
}

/// The names on a disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct DirectoryEntries {
    current: BTreeMap<String, u64>,
    durable: BTreeMap<String, u64>,
    /// What happened since the last sync, in order.
    pending: Vec<DirectoryChange>,
}

impl DirectoryEntries {
    pub(crate) fn get(&self, name: &str) -> Option<u64> {
        self.current.get(name).copied()
    }

    pub(crate) fn list(&self) -> Vec<String> {
        self.current.keys().cloned().collect()
    }

    /// Every file that has a name now.
    pub(crate) fn files(&self) -> impl Iterator<Item = u64> {
        self.current.values().copied()
    }

    /// Every file that has a name now, or may have one again after a power cut.
    pub(crate) fn reachable_files(&self) -> impl Iterator<Item = u64> {
        let made = self.pending.iter().filter_map(|change| match change {
            DirectoryChange::Created { file, .. } => Some(*file),
            _ => None,
        });
        self.files().chain(self.durable.values().copied()).chain(made)
    }

    pub(crate) fn change(&mut self, change: DirectoryChange) {
        change.apply(&mut self.current);
        self.pending.push(change);
    }

    pub(crate) fn sync(&mut self) {
        self.pending.clear();
        self.durable.clone_from(&self.current);
    }

    pub(crate) fn lose_power(&mut self, rng: &mut FaultRng) {
        let pending = std::mem::take(&mut self.pending);
        let groups = dependency_groups(&pending);
        let sizes = groups.iter().fold(BTreeMap::<usize, usize>::new(), |mut sizes, group| {
            *sizes.entry(*group).or_default() += 1;
            sizes
        });
        let mut remaining: BTreeMap<usize, usize> =
            sizes.into_iter().map(|(group, size)| (group, rng.below(size + 1))).collect();
        for (change, group) in pending.iter().zip(groups) {
            let count = remaining.entry(group).or_default();
            if *count > 0 {
                *count -= 1;
                change.apply(&mut self.durable);
            }
        }
        self.current.clone_from(&self.durable);
    }
}

/// To which group each change belongs: that of the first change that it shares a name with, directly or not.
fn dependency_groups(changes: &[DirectoryChange]) -> Vec<usize> {
    let mut groups: Vec<usize> = (0..changes.len()).collect();
    for (index, change) in changes.iter().enumerate() {
        let names = change.names();
        for earlier in 0..index {
            if changes[earlier].names().iter().any(|name| names.contains(name)) {
                let (one, other) = (groups[earlier], groups[index]);
                groups.iter_mut().filter(|group| **group == other).for_each(|group| *group = one);
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn renamed(from: &str, to: &str) -> DirectoryChange {
        DirectoryChange::Renamed { from: from.into(), to: to.into() }
    }

    #[test]
    fn a_power_cut_keeps_a_prefix_of_dependent_renames_and_any_mix_of_independent_ones() {
        let mut names = DirectoryEntries::default();
        for (file, name) in (0..).zip(["a", "x"]) {
            names.change(DirectoryChange::Created { name: name.into(), file });
        }
        names.sync();
        names.change(renamed("a", "b"));
        names.change(DirectoryChange::Removed { name: "x".into() });
        names.change(renamed("b", "c"));
        let outcome = |seed| {
            let mut names = names.clone();
            names.lose_power(&mut FaultRng::new(seed));
            names.list().join(" ")
        };
        let outcomes: BTreeSet<String> = (0..200).map(outcome).collect();
        let expected = ["a", "a x", "b", "b x", "c", "c x"].map(String::from);
        assert_eq!(outcomes, BTreeSet::from(expected));
        names.sync();
        names.lose_power(&mut FaultRng::new(1));
        assert_eq!(names.list(), ["c"], "what was synced is there");
    }
}
