//! What was told as a violation a moment ago is not told again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tenure_core::kernel::{Resource, Span, Tick};

/// Within this time, one file is told once.
const MOMENT: Span = Span::from_secs(5);
/// The most that are remembered.
const MOST: usize = 10_000;

/// When each file was last told.
#[derive(Default)]
pub(super) struct Violations(Mutex<HashMap<Resource, Tick>>);

impl Violations {
    /// Whether this is to be told.
    pub(super) fn is_new(&self, resource: &Resource, now: Tick) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= MOST {
            told.retain(|_, at| now.since(*at) < MOMENT);
        }
        let before = told.get(resource).copied();
        let is_new = before.is_none_or(|before| now.since(before) >= MOMENT);
        if is_new && told.len() < MOST {
            told.insert(resource.clone(), now);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_commit_is_told_once_and_the_next_one_again() {
        let (told, file) = (Violations::default(), Resource::parse("FILE:t/a").expect("a name"));
        let at = |seconds: u64| Tick(Span::from_secs(seconds).0);
        assert!(told.is_new(&file, at(1)));
        assert!(!told.is_new(&file, at(2)));
        assert!(told.is_new(&file, at(7)));
    }
}
