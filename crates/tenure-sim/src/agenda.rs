//! What will happen, in the order of true time.

use std::collections::BTreeMap;

/// Things to come. Two at the same time happen in the order they were planned.
#[derive(Debug)]
pub struct Agenda<T> {
    planned: BTreeMap<(u64, u64), T>,
    number: u64,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self { planned: BTreeMap::new(), number: 0 }
    }
}

impl<T> Agenda<T> {
    /// Plans something for true time `at`.
    pub fn plan(&mut self, at: u64, what: T) {
        self.number += 1;
        self.planned.insert((at, self.number), what);
    }

    pub fn next(&mut self) -> Option<(u64, T)> {
        self.planned.pop_first().map(|((at, _), what)| (at, what))
    }
}
