//! Entries found by name: resources, holders, principals.

use siphasher::sip::SipHasher13;

use super::hash_index::HashIndex;
use super::slab::{Slab, Slot};

pub(crate) trait NamedEntry {
    fn name(&self) -> &str;
}

/// Keeps callers from choosing names that all meet in one place of a table. It comes from the shell, which
/// has a random source; whatever it is, the kernel decides the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HashSeed(pub u64, pub u64);

/// What is known of a name once it was looked up, so that it need not be hashed again to come in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameLookup {
    hash: u32,
    slot: Option<Slot>,
}

impl NameLookup {
    pub(crate) fn slot(self) -> Option<Slot> {
        self.slot
    }
}

/// A slab and an index by name. Names stand in the entries only.
#[derive(Debug, Clone)]
pub(crate) struct NameTable<T> {
    entries: Slab<T>,
    index: HashIndex,
    seed: HashSeed,
}

impl<T: NamedEntry> NameTable<T> {
    pub(crate) fn new(seed: HashSeed) -> Self {
        Self { entries: Slab::default(), index: HashIndex::default(), seed }
    }

    pub(crate) fn find(&self, name: &str) -> Option<Slot> {
        self.find_hashed(self.hash(name), name)
    }

    /// Where the entry with this name stands, or would stand.
    pub(crate) fn look_up(&self, name: &str) -> NameLookup {
        let hash = self.hash(name);
        NameLookup { hash, slot: self.find_hashed(hash, name) }
    }

    /// The entry at `spot`, which is made if it is not there. Nothing came or went since that was looked up.
    pub(crate) fn get_or_insert(&mut self, spot: NameLookup, make: impl FnOnce() -> T) -> Slot {
        spot.slot.unwrap_or_else(|| {
            let slot = self.entries.insert(make());
            self.index.insert(spot.hash, slot);
            slot
        })
    }

    /// Adds an entry that nobody finds before [`Self::index_all`].
    pub(crate) fn push(&mut self, entry: T) -> Slot {
        self.entries.insert(entry)
    }

    /// Makes everything that was pushed into an empty table findable. Says whether each name stands there once.
    ///
    /// In the order of the hashes, which is that of the index: a million names that come one by one are a
    /// million trips to memory.
    pub(crate) fn index_all(&mut self) -> bool {
        let hashed = self.entries.iter().map(|(slot, entry)| (self.hash(entry.name()), slot));
        let mut hashed: Vec<(u32, Slot)> = hashed.collect();
        hashed.sort_unstable();
        self.index.reserve(hashed.len());
        hashed.iter().for_each(|(hash, slot)| self.index.insert(*hash, *slot));
        let mut alike = hashed.chunk_by(|one, other| one.0 == other.0).filter(|alike| alike.len() > 1);
        alike.all(|alike| {
            let mut names: Vec<_> = alike.iter().map(|(_, slot)| self.get(*slot).name()).collect();
            names.sort_unstable();
            names.windows(2).all(|pair| pair[0] != pair[1])
        })
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> T {
        let entry = self.entries.remove(slot);
        self.index.remove(self.hash(entry.name()), slot);
        entry
    }

    pub(crate) fn get(&self, slot: Slot) -> &T {
        self.entries.get(slot)
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut T {
        self.entries.get_mut(slot)
    }

    /// Every entry, in no order that means anything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        self.entries.iter()
    }

    fn find_hashed(&self, hash: u32, name: &str) -> Option<Slot> {
        self.index.find(hash, |slot| self.entries.get(slot).name() == name)
    }

    fn hash(&self, name: &str) -> u32 {
        let hasher = SipHasher13::new_with_keys(self.seed.0, self.seed.1);
        let [a, b, c, d, ..] = hasher.hash(name.as_bytes()).to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl NamedEntry for String {
        fn name(&self) -> &str {
            self
        }
    }

    #[test]
    fn index_all_finds_every_name_and_detects_duplicates() {
        let mut table = NameTable::new(HashSeed(1, 2));
        let names = || (0..5_000).map(|number| format!("name-{number}"));
        let slots: Vec<Slot> = names().map(|name| table.push(name)).collect();
        assert!(table.index_all());
        names().zip(&slots).for_each(|(name, slot)| assert_eq!(table.find(&name), Some(*slot)));
        assert_eq!(table.find("name-5000"), None);

        let mut table = NameTable::new(HashSeed(1, 2));
        names().chain(["name-77".to_owned()]).for_each(|name| _ = table.push(name));
        assert!(!table.index_all());
    }
}
