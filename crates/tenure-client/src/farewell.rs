//! What a keeper still says when it is over: that it leaves the queue, that it gives a lease back. Said until somebody
//! answers, because a lease that nobody uses keeps others waiting until it runs out.

use tenure_core::kernel::Span;

use crate::keeper::{Attempt, Call, Effect, Outcome};

/// How often it is said. With pauses that double, the last time is some seconds after the first.
const TRIES: usize = 8;

/// Everything that is still to be said.
#[derive(Debug, Default)]
pub(crate) struct Farewells(Vec<Farewell>);

#[derive(Debug)]
struct Farewell {
    call: Call,
    /// Which messages said it.
    attempts: Vec<Attempt>,
    /// When it is said again.
    at: u64,
    longest_pause: Span,
}

impl Farewells {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When something is to be said again.
    pub(crate) fn wake_at(&self) -> Option<u64> {
        self.0.iter().map(|farewell| farewell.at).min()
    }

    /// `attempt` says it for the first time.
    pub(crate) fn begin(&mut self, call: Call, attempt: Attempt, now: u64, longest_pause: Span) {
        let mut farewell = Farewell { call, attempts: vec![attempt], at: 0, longest_pause };
        farewell.at = now.saturating_add(farewell.pause());
        self.0.push(farewell);
    }

    /// What was answered, if it is one of these.
    pub(crate) fn replied(
        &mut self,
        attempt: Attempt,
        outcome: Outcome,
        now: u64,
        random: u64,
    ) -> Option<Call> {
        let place = self.0.iter().position(|farewell| farewell.attempts.contains(&attempt))?;
        let farewell = &mut self.0[place];
        let call = farewell.call;
        if outcome == Outcome::Failed {
            // Never later than planned.
            farewell.at = farewell.at.min(now.saturating_add(random % (farewell.pause() + 1)));
        } else {
            self.0.remove(place);
        }
        Some(call)
    }

    /// Says again what is due; what was said often enough is left to the lease's end.
    pub(crate) fn due(&mut self, now: u64, mut next_attempt: impl FnMut() -> Attempt) -> Vec<Effect> {
        self.0.retain(|farewell| now < farewell.at || farewell.attempts.len() < TRIES);
        let due = self.0.iter_mut().filter(|farewell| now >= farewell.at);
        due.map(|farewell| {
            let attempt = next_attempt();
            farewell.attempts.push(attempt);
            farewell.at = now.saturating_add(farewell.pause());
            Effect::Send { attempt, call: farewell.call }
        })
        .collect()
    }
}

impl Farewell {
    fn pause(&self) -> u64 {
        let first = Span::from_millis(100).0;
        let tries = self.attempts.len().saturating_sub(1).min(16);
        first.saturating_mul(1 << tries).min(self.longest_pause.0)
    }
}
