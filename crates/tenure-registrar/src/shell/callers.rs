//! Who waits for an answer, by the number that the registrar knows them by.

use std::collections::VecDeque;

use super::inbox::Responder;
use crate::registrar::Caller;

/// Numbers are given out one after the other and answered nearly in that order: no table is needed.
#[derive(Default)]
pub(crate) struct Callers {
    /// The number of the first in the queue.
    first: u64,
    waiting: VecDeque<Option<Responder>>,
}

impl Callers {
    pub(crate) fn add(&mut self, respond: Responder) -> Caller {
        self.waiting.push_back(Some(respond));
        Caller(self.first + self.waiting.len() as u64 - 1)
    }

    pub(crate) fn take(&mut self, caller: Caller) -> Option<Responder> {
        let place = usize::try_from(caller.0.checked_sub(self.first)?).ok()?;
        let found = self.waiting.get_mut(place)?.take();
        while let Some(None) = self.waiting.front() {
            self.waiting.pop_front();
            self.first += 1;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_once_in_whatever_order() {
        let mut callers = Callers::default();
        let numbers: Vec<Caller> = (0..5).map(|_| callers.add(Box::new(|_| {}))).collect();
        for index in [2, 0, 1, 4] {
            assert!(callers.take(numbers[index]).is_some());
            assert!(callers.take(numbers[index]).is_none(), "{index} was answered before");
        }
        let next = callers.add(Box::new(|_| {}));
        assert!(!numbers.contains(&next));
        assert!(callers.take(numbers[3]).is_some() && callers.take(next).is_some());
        assert!(callers.take(Caller(99)).is_none() && callers.waiting.is_empty());
    }
}
