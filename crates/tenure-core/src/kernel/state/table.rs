//! Entries found by name: resources, holders, principals.

use std::convert::Infallible;
use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::index::Index;
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
#[derive(Debug, Clone)]
pub(crate) struct Table<T> {
    entries: Slab<T>,
    index: Index,
    key: HashKey,
}

impl<T: Named> Table<T> {
    pub(crate) fn new(key: HashKey) -> Self {
        Self { entries: Slab::default(), index: Index::default(), key }
    }

    /// Where the entry with this name stands.
    pub(crate) fn find(&self, name: &str) -> Option<Slot> {
        self.find_hashed(self.hash(name), name)
    }

    /// Where the entry with this name stands, which is made if it is not there.
    pub(crate) fn find_or_insert(&mut self, name: &str, make: impl FnOnce() -> T) -> Slot {
        let Ok(slot) = self.find_or_try_insert(name, || Ok::<T, Infallible>(make()));
        slot
    }

    /// Where the entry with this name stands, which is made, if that can be, if it is not there.
    pub(crate) fn find_or_try_insert<E>(
        &mut self,
        name: &str,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Slot, E> {
        let hash = self.hash(name);
        if let Some(slot) = self.find_hashed(hash, name) {
            return Ok(slot);
        }
        let slot = self.entries.insert(make()?);
        self.index.insert(hash, slot);
        Ok(slot)
    }

    /// Adds an entry; nothing, if there is one with its name.
    pub(crate) fn insert(&mut self, entry: T) -> Option<Slot> {
        let hash = self.hash(entry.name());
        if self.find_hashed(hash, entry.name()).is_some() {
            return None;
        }
        let slot = self.entries.insert(entry);
        self.index.insert(hash, slot);
        Some(slot)
    }

    /// Makes room for so many more names.
    pub(crate) fn reserve(&mut self, more: usize) {
        self.index.reserve(more);
    }

    /// Takes an entry out.
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
        let mut hasher = SipHasher13::new_with_keys(self.key.0, self.key.1);
        hasher.write(name.as_bytes());
        let [a, b, c, d, ..] = hasher.finish().to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }
}
