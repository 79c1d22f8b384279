//! The age of an agent: fixed as long as it holds or wants anything.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use tenure_api::Problem;

/// What an agent is at, shared by all its copies.
#[derive(Clone, Default)]
pub(super) struct AgentPriority(Arc<Mutex<PriorityState>>);

#[derive(Default)]
struct PriorityState {
    priority: Option<u64>,
    /// The program said it, and nobody else changes it.
    is_explicit: bool,
    /// How many declarations and claims rest on it.
    guards: usize,
}

/// The agent's priority stays as it is while this lives.
pub(super) struct PriorityGuard(AgentPriority);

impl AgentPriority {
    pub(super) fn explicit(priority: u64) -> Self {
        Self(Arc::new(Mutex::new(PriorityState { priority: Some(priority), is_explicit: true, guards: 0 })))
    }

    /// What an agent remembers from before. It goes on with it.
    pub(super) fn restored(priority: u64) -> Self {
        Self(Arc::new(Mutex::new(PriorityState { priority: Some(priority), is_explicit: false, guards: 0 })))
    }

    pub(super) fn pin(&self) -> PriorityGuard {
        self.0.lock().guards += 1;
        PriorityGuard(self.clone())
    }

    /// The priority of the attempt, which begins now if there is none.
    pub(super) fn get_or_init(&self) -> u64 {
        *self.0.lock().priority.get_or_insert_with(unix_milliseconds)
    }

    /// Whether nothing else rests on it.
    pub(super) fn has_single_guard(&self) -> bool {
        self.0.lock().guards <= 1
    }

    /// The server knows another priority of this agent: an attempt that is not quite over, or a clock that went back.
    /// Whether to go on with that one.
    pub(super) fn adopt(&self, problem: &Problem) -> bool {
        let mut age = self.0.lock();
        match problem.priority_timestamp {
            Some(has) if !age.is_explicit && age.priority != Some(has) => {
                age.priority = Some(has);
                true
            }
            _ => false,
        }
    }

    /// The attempt is over: the next one is younger.
    pub(super) fn reset(&self) {
        let mut age = self.0.lock();
        (age.priority, age.is_explicit) = (None, false);
    }
}

impl Drop for PriorityGuard {
    fn drop(&mut self) {
        let mut age = self.0.0.lock();
        age.guards -= 1;
        if age.guards == 0 && !age.is_explicit {
            age.priority = None;
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "agents on several machines compare their ages; the server decides expiry by its own clock"
)]
fn unix_milliseconds() -> u64 {
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
        let attempt = AgentPriority::restored(5);
        let (one, two) = (attempt.pin(), attempt.pin());
        assert!(!attempt.has_single_guard());
        drop(one);
        assert_eq!((attempt.get_or_init(), attempt.has_single_guard()), (5, true));
        drop(two);
        assert!(attempt.get_or_init() > 5, "the next attempt is younger");
    }

    #[test]
    fn server_priority_is_adopted_once_unless_set_explicitly() {
        let attempt = AgentPriority::restored(5);
        assert!(attempt.adopt(&fixed(9)) && !attempt.adopt(&fixed(9)));
        assert_eq!(attempt.get_or_init(), 9);
        let explicit = AgentPriority::explicit(5);
        assert!(!explicit.adopt(&fixed(9)));
        drop(explicit.pin());
        assert_eq!(explicit.get_or_init(), 5);
    }
}
