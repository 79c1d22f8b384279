//! Finds a slot by the hash of a name.
//!
//! Open addressing with linear probing: whether a name is there, and where it goes if not, stands in one
//! line of the cache. A table with control bytes beside its entries needs two, and with a million leases
//! each is a trip to memory. Entries stand in the order of their hashes, or nearly: growing copies from
//! one end to the other instead of jumping about, which keeps the writer's pause short.

use super::slab::Slot;

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
