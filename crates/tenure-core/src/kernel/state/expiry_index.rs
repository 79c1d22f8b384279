//! Leases in the order of their expiry.
//!
//! Of leases that are as long as each other, who begins last ends last. So a new end nearly always stands behind all
//! others, and goes onto the last page without a search. A tree of single ends would be searched each time, and leaves
//! half of each node empty when it is filled from one side.

use std::collections::BTreeMap;

use crate::value::{Fence, TICK_RATE_HZ, Tick, TickDuration};

/// When which lease is over.
pub(crate) type Expiry = (Tick, Fence);

/// Ends in their order, on pages. A page is found by a bound: nothing on it is below that, and whatever stands on the
/// pages before it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExpiryIndex {
    pages: BTreeMap<Expiry, Vec<Expiry>>,
    len: usize,
}

/// More would make the tree smaller still, but an end in the middle moves half a page.
const PAGE: usize = 32;

impl ExpiryIndex {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn first(&self) -> Option<Expiry> {
        self.iter().next()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Expiry> {
        self.pages.values().flatten().copied()
    }

    pub(crate) fn contains(&self, end: Expiry) -> bool {
        let page = self.pages.range(..=end).next_back();
        page.is_some_and(|(_, page)| page.binary_search(&end).is_ok())
    }

    /// Adds an end that is not there yet.
    pub(crate) fn insert(&mut self, end: Expiry) {
        self.len += 1;
        match self.pages.last_entry() {
            Some(mut last) if *last.key() <= end && last.get().len() < PAGE => put(last.get_mut(), end),
            _ => self.insert_by_search(end),
        }
    }

    /// Takes out an end that is there.
    pub(crate) fn remove(&mut self, end: Expiry) {
        let Some((bound, page)) = self.pages.range_mut(..=end).next_back() else { return };
        let Ok(place) = page.binary_search(&end) else { return };
        page.remove(place);
        self.len -= 1;
        if page.is_empty() {
            let bound = *bound;
            self.pages.remove(&bound);
        }
    }

    fn insert_by_search(&mut self, end: Expiry) {
        let Some((_, page)) = self.pages.range_mut(..=end).next_back() else {
            // Bound by nothing, so that what comes before it stands on the same page.
            self.pages.insert((Tick(0), Fence(0)), vec![end]);
            return;
        };
        if page.len() < PAGE {
            return put(page, end);
        }
        let is_behind = page.last().is_some_and(|last| *last < end);
        let mut upper = if is_behind { Vec::with_capacity(PAGE) } else { page.split_off(PAGE / 2) };
        let is_lower = upper.first().is_some_and(|first| end < *first);
        put(if is_lower { page } else { &mut upper }, end);
        self.pages.insert(upper[0], upper);
    }
}

fn put(page: &mut Vec<Expiry>, end: Expiry) {
    match page.last() {
        Some(last) if *last > end => page.insert(page.partition_point(|other| *other < end), end),
        _ => page.push(end),
    }
}

impl FromIterator<Expiry> for ExpiryIndex {
    fn from_iter<I: IntoIterator<Item = Expiry>>(ends: I) -> Self {
        let mut ends: Vec<Expiry> = ends.into_iter().collect();
        ends.sort_unstable();
        let pages = ends.chunks(PAGE).map(|page| (page[0], page.to_vec()));
        ExpiryIndex { pages: pages.collect(), len: ends.len() }
    }
}

/// Live leases counted by a hundredth of their length, in whole seconds from 1 to 60.
#[derive(Debug, Clone)]
pub(crate) struct TtlHistogram([usize; MAX_SECONDS]);

/// Never less often than every minute.
const MAX_SECONDS: usize = 60;

impl Default for TtlHistogram {
    fn default() -> Self {
        Self([0; MAX_SECONDS])
    }
}

impl TtlHistogram {
    pub(crate) fn add(&mut self, ttl: TickDuration) {
        self.0[bucket(ttl)] += 1;
    }

    pub(crate) fn remove(&mut self, ttl: TickDuration) {
        self.0[bucket(ttl)] -= 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.0.iter().sum()
    }

    pub(crate) fn clock_mark_interval(&self) -> Option<TickDuration> {
        let shortest = self.0.iter().position(|count| *count > 0)?;
        Some(TickDuration((shortest as u64 + 1) * TICK_RATE_HZ))
    }
}

/// Rounded down, so that a mark is never too late; never more often than every second.
fn bucket(ttl: TickDuration) -> usize {
    let seconds = usize::try_from(ttl.0 / 100 / TICK_RATE_HZ).unwrap_or(MAX_SECONDS);
    seconds.clamp(1, MAX_SECONDS) - 1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Ends that come from either side, and crowd in the middle, stand as in a set.
    #[test]
    fn expiry_index_matches_a_btree_set() {
        let (mut ends, mut set) = (ExpiryIndex::default(), BTreeSet::new());
        let mut random = 1_u64;
        for step in 0..20_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = random >> 32;
            let tick = match number % 4 {
                0 => 100_000 + step,
                1 => 100_000 - step,
                2 => 100_000,
                _ => number % 200_000,
            };
            // Fills for a while, then empties for a while.
            let grows = (step / 2_000) % 2 == 0;
            if set.is_empty() || (number >> 8) % 10 < if grows { 7 } else { 3 } {
                ends.insert((Tick(tick), Fence(step)));
                set.insert((Tick(tick), Fence(step)));
            } else {
                let nth = usize::try_from(number).expect("32 bits") % set.len();
                let end = *set.iter().nth(nth).expect("there");
                ends.remove(end);
                set.remove(&end);
                assert!(!ends.contains(end));
            }
            assert_eq!((ends.len(), ends.first()), (set.len(), set.first().copied()));
            if step % 100 == 0 {
                assert!(ends.iter().eq(set.iter().copied()));
                assert!(set.iter().all(|end| ends.contains(*end)));
                let again: ExpiryIndex = set.iter().rev().copied().collect();
                assert!(again.iter().eq(set.iter().copied()) && again.len() == set.len());
            }
        }
        set.iter().for_each(|end| ends.remove(*end));
        assert!(ends.len() == 0 && ends.pages.is_empty(), "empty pages go");
    }

    #[test]
    fn sequential_inserts_fill_pages() {
        let (mut ends, mut backwards) = (ExpiryIndex::default(), ExpiryIndex::default());
        for number in 0..PAGE as u64 * 10 {
            ends.insert((Tick(number), Fence(number)));
            backwards.insert((Tick(1_000 - number), Fence(number)));
        }
        assert_eq!(ends.pages.len(), 10);
        assert!(backwards.pages.len() <= 20, "half full at least");
    }

    #[test]
    fn shortest_active_ttl_sets_the_mark_interval() {
        let mut histogram = TtlHistogram::default();
        assert_eq!(histogram.clock_mark_interval(), None);
        histogram.add(TickDuration::from_secs(24 * 3600));
        assert_eq!(histogram.clock_mark_interval(), Some(TickDuration::from_secs(60)));
        histogram.add(TickDuration::from_secs(1_000));
        assert_eq!(histogram.clock_mark_interval(), Some(TickDuration::from_secs(10)));
        histogram.add(TickDuration::from_secs(5));
        assert_eq!(histogram.clock_mark_interval(), Some(TickDuration::from_secs(1)));
        histogram.remove(TickDuration::from_secs(5));
        assert_eq!(histogram.clock_mark_interval(), Some(TickDuration::from_secs(10)));
    }
}
