//! The leases of one holder.

use super::slab::Slot;

/// Slots in no order that means anything.
///
/// The newest stand in the holder's entry itself, which a grant has at hand anyway. A list through the
/// leases, or the end of a vector, is a trip to memory for each grant once there are many leases.
#[derive(Debug, Clone, Default)]
pub(crate) struct HolderLeases {
    newest: [Option<Slot>; INLINE_SLOTS],
    overflow: Vec<Slot>,
}

const INLINE_SLOTS: usize = 6;

impl HolderLeases {
    pub(crate) fn len(&self) -> usize {
        self.overflow.len() + self.newest.iter().flatten().count()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.overflow.is_empty() && self.newest[0].is_none()
    }

    pub(crate) fn get(&self, place: usize) -> Option<Slot> {
        let behind = place.checked_sub(self.overflow.len());
        behind.map_or_else(|| self.overflow.get(place).copied(), |place| *self.newest.get(place)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Slot> {
        self.overflow.iter().copied().chain(self.newest.iter().flatten().copied())
    }

    pub(crate) fn push(&mut self, slot: Slot) {
        if self.newest[INLINE_SLOTS - 1].is_some() {
            self.overflow.extend(self.newest.iter_mut().filter_map(Option::take));
        }
        let free = self.newest.iter_mut().find(|place| place.is_none());
        *free.expect("room was made") = Some(slot);
    }

    /// Takes out what stands at `place`. The last one takes that place, if it is another, and is returned.
    pub(crate) fn swap_remove(&mut self, place: usize) -> Option<Slot> {
        let newest = self.newest.iter_mut().rev().find_map(Option::take);
        let last = newest.or_else(|| self.overflow.pop())?;
        match place.checked_sub(self.overflow.len()) {
            None => self.overflow[place] = last,
            // It was the last itself: nothing is left to move.
            Some(behind) if self.newest.get(behind).is_none_or(Option::is_none) => return None,
            Some(behind) => self.newest[behind] = Some(last),
        }
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::state::slab::Slab;

    #[test]
    fn holder_leases_match_a_vector() {
        let (mut slab, mut own, mut vector) = (Slab::default(), HolderLeases::default(), Vec::new());
        for step in 0..5_000_usize {
            // More come than go, then more go than come.
            let grows = (step / 50) % 2 == 0;
            if vector.is_empty() || (step * 7) % 10 < if grows { 8 } else { 2 } {
                let slot = slab.insert(step);
                own.push(slot);
                vector.push(slot);
            } else {
                let place = step * 31 % vector.len();
                vector.swap_remove(place);
                assert_eq!(own.swap_remove(place), vector.get(place).copied());
            }
            assert_eq!(own.iter().collect::<Vec<_>>(), vector);
            assert_eq!((own.len(), own.is_empty()), (vector.len(), vector.is_empty()));
            assert!((0..=vector.len() + 9).all(|place| own.get(place) == vector.get(place).copied()));
        }
    }
}
