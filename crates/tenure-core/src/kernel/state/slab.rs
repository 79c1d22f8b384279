//! A table that grows without copying: a million leases must not stop the writer while a vector doubles.

use std::num::NonZeroU32;

/// Where an entry stands. The number of a removed entry is given out again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(NonZeroU32);

/// Entries in pages, found by [`Slot`].
#[derive(Debug, Clone)]
pub(crate) struct Slab<T> {
    pages: Vec<Vec<SlabEntry<T>>>,
    free: Option<Slot>,
    len: usize,
}

#[derive(Debug, Clone)]
enum SlabEntry<T> {
    Full(T),
    Free { next: Option<Slot> },
}

const PAGE: usize = 1024;

impl Slot {
    fn from_index(index: usize) -> Slot {
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Slot(number.expect("fewer than 2^32 entries fit into memory"))
    }

    /// Its place in the order of all slots, from 0.
    pub(crate) fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { pages: Vec::new(), free: None, len: 0 }
    }
}

impl<T> Slab<T> {
    /// Puts `value` where it stays until it is removed.
    pub(crate) fn insert(&mut self, value: T) -> Slot {
        self.len += 1;
        if let Some(slot) = self.free {
            let SlabEntry::Free { next } = std::mem::replace(self.entry_mut(slot), SlabEntry::Full(value))
            else {
                unreachable!("the free list leads to free entries only");
            };
            self.free = next;
            return slot;
        }
        if self.pages.last().is_none_or(|page| page.len() == PAGE) {
            self.pages.push(Vec::with_capacity(PAGE));
        }
        let before = (self.pages.len() - 1) * PAGE;
        let page = self.pages.last_mut().expect("a page was pushed");
        page.push(SlabEntry::Full(value));
        Slot::from_index(before + page.len() - 1)
    }

    /// Takes an entry out. The newest hole is filled first, while it is still in the cache.
    pub(crate) fn remove(&mut self, slot: Slot) -> T {
        let hole = SlabEntry::Free { next: self.free };
        let SlabEntry::Full(value) = std::mem::replace(self.entry_mut(slot), hole) else {
            unreachable!("{slot:?} was removed before");
        };
        self.free = Some(slot);
        self.len -= 1;
        value
    }

    /// The entry at `slot`, which somebody still refers to.
    pub(crate) fn get(&self, slot: Slot) -> &T {
        match &self.pages[slot.index() / PAGE][slot.index() % PAGE] {
            SlabEntry::Full(value) => value,
            SlabEntry::Free { .. } => unreachable!("{slot:?} was removed while it was referred to"),
        }
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut T {
        match self.entry_mut(slot) {
            SlabEntry::Full(value) => value,
            SlabEntry::Free { .. } => unreachable!("{slot:?} was removed while it was referred to"),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Every entry, in no order that means anything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        let entries = self.pages.iter().flatten().enumerate();
        entries.filter_map(|(index, entry)| match entry {
            SlabEntry::Full(value) => Some((Slot::from_index(index), value)),
            SlabEntry::Free { .. } => None,
        })
    }

    fn entry_mut(&mut self, slot: Slot) -> &mut SlabEntry<T> {
        &mut self.pages[slot.index() / PAGE][slot.index() % PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insert_reuses_a_removed_slot() {
        let mut slab = Slab::default();
        let slots: Vec<_> = (0..3000).map(|number| slab.insert(number)).collect();
        assert_eq!(slab.remove(slots[1500]), 1500);
        assert_eq!(slab.len(), 2999);
        assert_eq!(slab.insert(7), slots[1500]);
        assert_eq!(*slab.get(slots[1500]), 7);
        assert_eq!(*slab.get(slots[2999]), 2999);
        assert_eq!(slab.iter().count(), 3000);
    }
}
