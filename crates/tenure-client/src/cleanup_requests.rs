//! Requests of a stopped keep-alive: leave the queue, release the lease. They are retried, because an abandoned lease
//! blocks other clients until it expires.

use tenure_core::kernel::TickDuration;

use crate::keepalive::{AttemptId, Effect, KeepAliveRequest, ReplyOutcome};

/// How often it is said. With pauses that double, the last time is some seconds after the first.
const MAX_TRIES: usize = 8;

/// Everything that is still to be said.
#[derive(Debug, Default)]
pub(crate) struct CleanupRequests(Vec<CleanupRequest>);

#[derive(Debug)]
struct CleanupRequest {
    request: KeepAliveRequest,
    /// Which messages said it.
    request_ids: Vec<AttemptId>,
    /// When it is said again.
    next_send: u64,
    max_backoff: TickDuration,
}

impl CleanupRequests {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When something is to be said again.
    pub(crate) fn wake_at(&self) -> Option<u64> {
        self.0.iter().map(|farewell| farewell.next_send).min()
    }

    /// `attempt` says it for the first time.
    pub(crate) fn add(
        &mut self,
        call: KeepAliveRequest,
        attempt: AttemptId,
        now: u64,
        longest_pause: TickDuration,
    ) {
        let mut request = CleanupRequest {
            request: call,
            request_ids: vec![attempt],
            next_send: 0,
            max_backoff: longest_pause,
        };
        request.next_send = now.saturating_add(request.backoff());
        self.0.push(request);
    }

    /// What was answered, if it is one of these.
    pub(crate) fn handle_reply(
        &mut self,
        attempt: AttemptId,
        outcome: ReplyOutcome,
        now: u64,
        random: u64,
    ) -> Option<KeepAliveRequest> {
        let index = self.0.iter().position(|farewell| farewell.request_ids.contains(&attempt))?;
        let farewell = &mut self.0[index];
        let call = farewell.request;
        if outcome == ReplyOutcome::Failed {
            // Never later than planned.
            farewell.next_send =
                farewell.next_send.min(now.saturating_add(random % (farewell.backoff() + 1)));
        } else {
            self.0.remove(index);
        }
        Some(call)
    }

    /// Says again what is due; what was said often enough is left to the lease's end.
    pub(crate) fn take_due(&mut self, now: u64, mut next_attempt: impl FnMut() -> AttemptId) -> Vec<Effect> {
        self.0.retain(|farewell| now < farewell.next_send || farewell.request_ids.len() < MAX_TRIES);
        let due = self.0.iter_mut().filter(|farewell| now >= farewell.next_send);
        due.map(|farewell| {
            let attempt = next_attempt();
            farewell.request_ids.push(attempt);
            farewell.next_send = now.saturating_add(farewell.backoff());
            Effect::Send { request_id: attempt, request: farewell.request }
        })
        .collect()
    }
}

impl CleanupRequest {
    fn backoff(&self) -> u64 {
        let first = TickDuration::from_millis(100).0;
        let tries = self.request_ids.len().saturating_sub(1).min(16);
        first.saturating_mul(1 << tries).min(self.max_backoff.0)
    }
}
