//! Entries found by name: resources, holders, principals.

use std::hash::Hasher;

use hashbrown::HashTable;
use siphasher::sip::SipHasher13;

use super::slab::{Slab, Slot};

/// What a [`Table`] holds.
pub(crate) trait Named {
    /// The name by which it is found.
    fn name(&self) -> &str;
}

/// Keeps callers from choosing names that all meet in one place of a table. It comes from the shell, which
/// has a random source; whatever it is, the kernel decides the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HashKey(pub u64, pub u64);

/// A slab and an index by name. Names stand in the entries only.
#[derive(Debug)]
pub(crate) struct Table<T> {
    entries: Slab<T>,
    index: HashTable<IndexEntry>,
    key: HashKey,
}

/// Keeps part of the hash, so that a growing index need not visit every name.
#[derive(Debug, Clone, Copy)]
struct IndexEntry {
    hash: u32,
    slot: Slot,
}

impl<T: Named> Table<T> {
    pub(crate) fn new(key: HashKey) -> Self {
        Self { entries: Slab::default(), index: HashTable::new(), key }
    }

    /// Where the entry with this name stands.
    pub(crate) fn find(&self, name: &str) -> Option<Slot> {
        let hash = self.hash(name);
        let found = self.index.find(spread(hash), |entry| self.is(*entry, hash, name));
        found.map(|entry| entry.slot)
    }

    /// Adds an entry whose name is not there yet.
    pub(crate) fn insert(&mut self, value: T) -> Slot {
        let hash = self.hash(value.name());
        let slot = self.entries.insert(value);
        self.index.insert_unique(spread(hash), IndexEntry { hash, slot }, |entry| spread(entry.hash));
        slot
    }

    /// Where the entry with this name stands, which is made if it is not there.
    pub(crate) fn find_or_insert(&mut self, name: &str, make: impl FnOnce() -> T) -> Slot {
        self.find(name).unwrap_or_else(|| self.insert(make()))
    }

    /// Takes an entry out.
    pub(crate) fn remove(&mut self, slot: Slot) -> T {
        let hash = self.hash(self.entries.get(slot).name());
        if let Ok(found) = self.index.find_entry(spread(hash), |entry| entry.slot == slot) {
            found.remove();
        }
        self.entries.remove(slot)
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

    fn is(&self, entry: IndexEntry, hash: u32, name: &str) -> bool {
        entry.hash == hash && self.entries.get(entry.slot).name() == name
    }

    fn hash(&self, name: &str) -> u32 {
        let mut hasher = SipHasher13::new_with_keys(self.key.0, self.key.1);
        hasher.write(name.as_bytes());
        let [a, b, c, d, ..] = hasher.finish().to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }
}

/// The index looks at the highest and at the lowest bits of a hash: both must depend on all of it.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
