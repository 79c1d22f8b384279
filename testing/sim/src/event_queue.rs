//! What will happen, in the order of true time.

use std::collections::BTreeMap;

/// Things to come. Two at the same time happen in the order they were planned.
#[derive(Debug)]
pub struct EventQueue<T> {
    scheduled: BTreeMap<(u64, u64), T>,
    sequence: u64,
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        Self { scheduled: BTreeMap::new(), sequence: 0 }
    }
}

impl<T> EventQueue<T> {
    /// Plans something for true time `at`.
    pub fn schedule(&mut self, at: u64, what: T) {
        self.sequence += 1;
        self.scheduled.insert((at, self.sequence), what);
    }

    pub fn pop(&mut self) -> Option<(u64, T)> {
        self.scheduled.pop_first().map(|((at, _), what)| (at, what))
    }
}
