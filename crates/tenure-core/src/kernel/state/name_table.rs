//! Entries found by name: resources, holders, principals.

use siphasher::sip::SipHasher13;

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

/// Slots by hash.
#[derive(Debug, Clone, Default)]
pub(crate) struct HashIndex {
    places: Vec<Option<IndexEntry>>,
    len: usize,
}

/// Keeps the hash, so that a growing index visits no name.
#[derive(Debug, Clone, Copy)]
struct IndexEntry {
    hash: u32,
    slot: Slot,
}

const MIN_SIZE: usize = 16;

impl HashIndex {
    /// The slot with this hash that `is` the one looked for.
    pub(crate) fn find(&self, hash: u32, is: impl Fn(Slot) -> bool) -> Option<Slot> {
        let found = |entry: &IndexEntry| entry.hash == hash && is(entry.slot);
        self.probe_from(hash).find(|(_, entry)| found(entry)).map(|(_, entry)| entry.slot)
    }

    /// Makes room for so many more, as large as it would have grown step by step.
    pub(crate) fn reserve(&mut self, more: usize) {
        let mut size = self.places.len().max(MIN_SIZE);
        while (self.len + more) * 4 > size * 3 {
            size *= 2;
        }
        if size > self.places.len() {
            self.grow_to(size);
        }
    }

    /// Adds a slot that is not there yet.
    pub(crate) fn insert(&mut self, hash: u32, slot: Slot) {
        if (self.len + 1) * 4 > self.places.len() * 3 {
            self.grow_to((self.places.len() * 2).max(MIN_SIZE));
        }
        self.len += 1;
        self.put(IndexEntry { hash, slot });
    }

    /// Takes a slot out, if it is there.
    pub(crate) fn remove(&mut self, hash: u32, slot: Slot) {
        let found = self.probe_from(hash).find(|(_, entry)| entry.slot == slot);
        let Some((mut hole, _)) = found else { return };
        // Whoever stands behind the hole moves into it, unless that is before the place it belongs to: no
        // search ever meets a gap before what it looks for, and no marks of the removed pile up.
        let mut place = self.after(hole);
        while let Some(entry) = self.places[place] {
            let home = self.home(entry.hash);
            if self.distance(home, place) >= self.distance(hole, place) {
                self.places[hole] = Some(entry);
                hole = place;
            }
            place = self.after(place);
        }
        self.places[hole] = None;
        self.len -= 1;
    }

    /// The entries from where one with this hash belongs up to the next gap.
    fn probe_from(&self, hash: u32) -> impl Iterator<Item = (usize, IndexEntry)> {
        let mut place = self.home(hash);
        std::iter::from_fn(move || {
            let here = place;
            let entry = (*self.places.get(here)?)?;
            place = self.after(here);
            Some((here, entry))
        })
    }

    fn put(&mut self, entry: IndexEntry) {
        let mut place = self.home(entry.hash);
        while self.places[place].is_some() {
            place = self.after(place);
        }
        self.places[place] = Some(entry);
    }

    fn grow_to(&mut self, size: usize) {
        let before = std::mem::replace(&mut self.places, vec![None; size]);
        before.into_iter().flatten().for_each(|entry| self.put(entry));
    }

    /// By the hash's highest bits, so that a larger table has its entries in the same order.
    fn home(&self, hash: u32) -> usize {
        let place = (u64::from(hash) * self.places.len() as u64) >> 32;
        usize::try_from(place).expect("it is smaller than the table")
    }

    fn after(&self, place: usize) -> usize {
        if place + 1 == self.places.len() { 0 } else { place + 1 }
    }

    /// How far it is from one place to another that does not come before it, the table being a ring.
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.places.len() - from }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::kernel::state::slab::Slab;

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

    /// Hashes that crowd in few places, at the end of the table above all, find what a map finds.
    #[test]
    fn hash_index_matches_a_map() {
        let mut slab = Slab::default();
        let (mut index, mut map) = (HashIndex::default(), BTreeMap::<Slot, u32>::new());
        let mut random = 1_u64;
        for step in 0..20_000_u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = u32::try_from(random >> 32).expect("32 bits");
            let hash = if number & 1 == 0 { u32::MAX - number % 7 } else { number };
            // Fills for a while, then empties for a while.
            let grows = (step / 2_000) % 2 == 0;
            if map.is_empty() || (number >> 8) % 10 < if grows { 7 } else { 3 } {
                let slot = slab.insert(());
                index.insert(hash, slot);
                map.insert(slot, hash);
            } else {
                let nth = number as usize % map.len();
                let (slot, hash) = map.iter().nth(nth).map(|(slot, hash)| (*slot, *hash)).expect("there");
                index.remove(hash, slot);
                slab.remove(slot);
                map.remove(&slot);
                assert_eq!(index.find(hash, |found| found == slot), None);
            }
            assert_eq!(index.len, map.len());
            if step % 100 == 0 {
                assert!(map.iter().all(|(slot, hash)| index.find(*hash, |found| found == *slot).is_some()));
            }
        }
    }
}
