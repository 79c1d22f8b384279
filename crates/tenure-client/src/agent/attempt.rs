//! The age of an agent: fixed as long as it holds or wants anything.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use tenure_api::Problem;

/// What an agent is at, shared by all its copies.
#[derive(Clone, Default)]
pub(super) struct Attempt(Arc<Mutex<Age>>);

#[derive(Default)]
struct Age {
    priority: Option<u64>,
    /// The program said it, and nobody else changes it.
    is_given: bool,
    /// How many declarations and claims rest on it.
    engaged: usize,
}

/// The agent's priority stays as it is while this lives.
pub(super) struct Engaged(Attempt);

impl Attempt {
    pub(super) fn given(priority: u64) -> Self {
        Self(Arc::new(Mutex::new(Age { priority: Some(priority), is_given: true, engaged: 0 })))
    }

    /// What an agent remembers from before. It goes on with it.
    pub(super) fn remembered(priority: u64) -> Self {
        Self(Arc::new(Mutex::new(Age { priority: Some(priority), is_given: false, engaged: 0 })))
    }

    pub(super) fn engage(&self) -> Engaged {
        self.0.lock().engaged += 1;
        Engaged(self.clone())
    }

    /// The priority of the attempt, which begins now if there is none.
    pub(super) fn priority(&self) -> u64 {
        *self.0.lock().priority.get_or_insert_with(wall_milliseconds)
    }

    /// Whether nothing else rests on it.
    pub(super) fn is_alone(&self) -> bool {
        self.0.lock().engaged <= 1
    }

    /// The server knows another priority of this agent: an attempt that is not quite over, or a clock that went back.
    /// Whether to go on with that one.
    pub(super) fn adopt(&self, problem: &Problem) -> bool {
        let mut age = self.0.lock();
        match problem.priority_timestamp {
            Some(has) if !age.is_given && age.priority != Some(has) => {
                age.priority = Some(has);
                true
            }
            _ => false,
        }
    }

    /// The attempt is over: the next one is younger.
    pub(super) fn end(&self) {
        let mut age = self.0.lock();
        (age.priority, age.is_given) = (None, false);
    }
}

impl Drop for Engaged {
    fn drop(&mut self) {
        let mut age = self.0.0.lock();
        age.engaged -= 1;
        if age.engaged == 0 && !age.is_given {
            age.priority = None;
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "agents on several machines compare their ages; the server decides expiry by its own clock"
)]
fn wall_milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tenure_api::Code;

    use super::*;

    fn fixed(has: u64) -> Problem {
        let mut problem = Problem::new(Code::PriorityFixed, "");
        problem.priority_timestamp = Some(has);
        problem
    }

    #[test]
    fn priority_is_kept_until_the_last_guard_is_dropped() {
        let attempt = Attempt::remembered(5);
        let (one, two) = (attempt.engage(), attempt.engage());
        assert!(!attempt.is_alone());
        drop(one);
        assert_eq!((attempt.priority(), attempt.is_alone()), (5, true));
        drop(two);
        assert!(attempt.priority() > 5, "the next attempt is younger");
    }

    #[test]
    fn server_priority_is_adopted_once_unless_set_explicitly() {
        let attempt = Attempt::remembered(5);
        assert!(attempt.adopt(&fixed(9)) && !attempt.adopt(&fixed(9)));
        assert_eq!(attempt.priority(), 9);
        let given = Attempt::given(5);
        assert!(!given.adopt(&fixed(9)));
        drop(given.engage());
        assert_eq!(given.priority(), 5);
    }
}
