//! Finds a live lease by its number, in the order of the numbers.
//!
//! Numbers are given out one after the other, so neighbours stand on one page: the tree of pages is a
//! sixteenth of what a tree of leases would be, and nearly all of a search in it stays in the cache.

use std::collections::BTreeMap;

use super::slab::Slot;
use crate::value::Fence;

/// Slots by fence.
#[derive(Debug, Clone, Default)]
pub(crate) struct FenceIndex {
    pages: BTreeMap<u64, [Option<Slot>; PAGE]>,
    len: usize,
}

/// More would make the tree smaller still, but a page may come to be kept for one long lease alone.
const PAGE: usize = 16;

impl FenceIndex {
    pub(crate) fn get(&self, fence: Fence) -> Option<Slot> {
        let (page, place) = place_of(fence);
        self.pages.get(&page)?[place]
    }

    /// Adds a number that was never there before.
    pub(crate) fn insert(&mut self, fence: Fence, slot: Slot) {
        let (page, place) = place_of(fence);
        // Nearly always on the last page: the way there needs no comparison.
        match self.pages.last_entry() {
            Some(mut last) if *last.key() == page => last.get_mut()[place] = Some(slot),
            _ => self.pages.entry(page).or_default()[place] = Some(slot),
        }
        self.len += 1;
    }

    /// Takes out a number that is there.
    pub(crate) fn remove(&mut self, fence: Fence) {
        let (page, place) = place_of(fence);
        let Some(slots) = self.pages.get_mut(&page) else { return };
        self.len -= usize::from(slots[place].take().is_some());
        if slots.iter().all(Option::is_none) {
            self.pages.remove(&page);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The slots from `first` on, in the order of their numbers.
    pub(crate) fn iter_from(&self, first: Fence) -> impl Iterator<Item = Slot> {
        let (first_page, first_place) = place_of(first);
        self.pages.range(first_page..).flat_map(move |(page, slots)| {
            let skipped = if *page == first_page { first_place } else { 0 };
            slots[skipped..].iter().filter_map(|slot| *slot)
        })
    }
}

fn place_of(fence: Fence) -> (u64, usize) {
    let page = PAGE as u64;
    (fence.0 / page, usize::try_from(fence.0 % page).expect("a place on a page"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::state::slab::Slab;

    #[test]
    fn iteration_is_ordered_from_any_fence_and_empty_pages_are_dropped() {
        let (mut slab, mut numbers) = (Slab::default(), FenceIndex::default());
        for number in (1..200).filter(|number| number % 3 == 0) {
            numbers.insert(Fence(number), slab.insert(number));
        }
        let from = |numbers: &FenceIndex, first| {
            numbers.iter_from(Fence(first)).map(|slot| *slab.get(slot)).collect()
        };
        let expected = |first: u64| (first.max(1)..200).filter(|number| number % 3 == 0);
        for first in [0, 1, 16, 47, 48, 49, 198, 199, 500] {
            let found: Vec<u64> = from(&numbers, first);
            assert_eq!(found, expected(first).collect::<Vec<_>>(), "from {first}");
        }
        assert_eq!((numbers.get(Fence(47)), numbers.len()), (None, expected(0).count()));
        expected(0).filter(|number| *number != 48).for_each(|number| numbers.remove(Fence(number)));
        assert_eq!(from(&numbers, 0), [48]);
        assert_eq!((numbers.len(), numbers.pages.len()), (1, 1));
    }
}
