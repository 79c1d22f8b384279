//! The requests of `KeepAlive`, and what their responses mean.

use std::sync::Arc;

use tenure_api::{Code, LeaseGrant, LeaseGrants, LeaseRenewal, ReleaseRequest, RenewalRequest};
use tenure_core::kernel::{Fence, TickDuration};

use super::keepalive_task::{KeepAliveTask, RESPONSE_MARGIN, to_microseconds};
use super::{LeaseRequest, WaitLimit};
use crate::client::Client;
use crate::clock::boot_microseconds;
use crate::error::Error;
use crate::http::ApiRequest;
use crate::keepalive::{AttemptId, Input, ReplyOutcome};

/// What was heard.
pub(super) enum RequestOutcome {
    /// There is a connection, and the request is on its way.
    Sent,
    /// All of it is ours.
    Granted(Vec<LeaseGrant>),
    /// All of it is still ours.
    Renewed(Vec<LeaseRenewal>),
    /// It is over, and how.
    Ended(String),
    /// It was given back.
    Released,
    /// Nothing will come of the wish any more.
    Withdrawn,
    /// What comes of it is said in answer to another request that is under way.
    Pending {
        /// Whether it may still be in a queue, which nobody can get it out of.
        is_queued: bool,
    },
    /// Anything else.
    Failed(Error),
}

impl LeaseRequest {
    /// Asks for all of it.
    pub(super) async fn send(
        &self,
        client: &Client,
        call: &ApiRequest,
        on_sent: impl FnOnce(),
    ) -> Result<Vec<LeaseGrant>, Error> {
        let answer = client.transport().send_with_callback(call, on_sent).await?;
        let granted = if self.is_batch {
            answer.read::<LeaseGrants>(|| client.address())?.leases
        } else {
            vec![answer.read(|| client.address())?]
        };
        if granted.len() == self.leases.len() && !granted.is_empty() {
            return Ok(granted);
        }
        let detail = format!("{} leases for {} wishes", granted.len(), self.leases.len());
        Err(Error::Protocol { address: client.address(), detail })
    }
}

pub(super) async fn renew(client: &Client, leases: Arc<Vec<LeaseGrant>>) -> RequestOutcome {
    let mut renewed = Vec::with_capacity(leases.len());
    for granted in leases.iter() {
        let request = RenewalRequest { token: granted.token.clone(), ttl_ms: None };
        match client.renew(&granted.lease.id, &request).await {
            Ok(answer) => renewed.push(answer),
            Err(error) => return ended_or_failed(error),
        }
    }
    RequestOutcome::Renewed(renewed)
}

/// Whoever is not let in any more holds nothing any more: its leases end with its token.
fn ended_or_failed(error: Error) -> RequestOutcome {
    match &error {
        Error::Problem(problem) => match problem.code {
            Code::Expired | Code::NotFound | Code::TokenInvalid | Code::Unauthorized | Code::Forbidden => {
                RequestOutcome::Ended(problem.end.clone().unwrap_or_else(|| problem.code.as_str().to_owned()))
            }
            _ => RequestOutcome::Failed(error),
        },
        _ => RequestOutcome::Failed(error),
    }
}

pub(super) async fn release(
    client: &Client,
    leases: Arc<Vec<LeaseGrant>>,
    reason: Option<String>,
) -> RequestOutcome {
    let mut failed = None;
    for granted in leases.iter() {
        let request = ReleaseRequest { token: granted.token.clone(), reason: reason.clone() };
        match client.release(&granted.lease.id, &request).await {
            Ok(_) => {}
            Err(error) if matches!(error.code(), Some(Code::Expired | Code::NotFound)) => {}
            // The others are given back all the same.
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(RequestOutcome::Released, RequestOutcome::Failed)
}

/// What one request led to.
pub(super) struct RequestEvent {
    pub(super) request_id: AttemptId,
    pub(super) request: Arc<LeaseRequest>,
    pub(super) outcome: RequestOutcome,
}

impl KeepAliveTask {
    pub(super) fn handle_event(
        &mut self,
        RequestEvent { request_id: attempt, request, outcome: what }: RequestEvent,
    ) {
        let was_acquiring = self.acquire_requests.len();
        if !matches!(what, RequestOutcome::Sent) {
            self.acquire_requests.retain(|(other, _)| *other != attempt);
        }
        let is_lost = matches!(what, RequestOutcome::Failed(Error::OutcomeUnknown { .. }));
        // The server may come to it only now, after it let us out of the queue.
        self.is_outcome_unknown |= is_lost && self.acquire_requests.len() < was_acquiring;
        if let Some(outcome) = self.outcome(what, &request, attempt) {
            self.step(Input::Replied { request_id: attempt, outcome });
        }
        let is_clear = self.acquire_requests.is_empty() && !self.is_outcome_unknown;
        if let Some(attempt) = self.withdrawn.take_if(|_| is_clear) {
            self.step(Input::Replied { request_id: attempt, outcome: ReplyOutcome::Ended });
        }
    }

    /// What the keeper is told; nothing, if it shall ask again.
    fn outcome(
        &mut self,
        what: RequestOutcome,
        request: &Arc<LeaseRequest>,
        attempt: AttemptId,
    ) -> Option<ReplyOutcome> {
        Some(match what {
            RequestOutcome::Sent => {
                self.was_reached = true;
                // Who does not wait in a queue is answered soon, or not at all.
                if !request.has_wait() {
                    return None;
                }
                ReplyOutcome::Queued
            }
            RequestOutcome::Granted(granted) => {
                // Whatever else is under way asks for the same under the same key.
                self.abort_acquiring();
                let outcome =
                    valid_outcome(granted.iter().map(|granted| (granted.lease.fence, granted.valid_for_ms)));
                self.granted.insert(Fence(granted[0].lease.fence), Arc::new(granted));
                outcome
            }
            RequestOutcome::Renewed(renewed) => {
                self.update_leases(&renewed);
                valid_outcome(renewed.iter().map(|renewed| (renewed.lease.fence, renewed.valid_for_ms)))
            }
            RequestOutcome::Ended(how) => {
                self.end = Some(how);
                let several = self.granted.values().find(|granted| granted.len() > 1);
                self.remaining_leases = several.filter(|_| !self.is_stopped).cloned();
                ReplyOutcome::Ended
            }
            RequestOutcome::Released => {
                self.last_error = None;
                if let Some(released) = self.released.take() {
                    let _ = released.send(Ok(()));
                }
                ReplyOutcome::Ended
            }
            // A request that is still on its way would get us into the queue again. Only when each has been answered
            // is this the last word; until then we look again.
            RequestOutcome::Withdrawn => {
                if std::mem::take(&mut self.is_outcome_unknown) {
                    return None;
                }
                if !self.acquire_requests.is_empty() {
                    self.withdrawn = Some(attempt);
                    return None;
                }
                ReplyOutcome::Ended
            }
            RequestOutcome::Pending { is_queued: false } => return None,
            // A place in the queue that we cannot leave is ours until our turn comes.
            RequestOutcome::Pending { is_queued: true } => {
                self.deadline = None;
                ReplyOutcome::Ended
            }
            RequestOutcome::Failed(error) => self.outcome_of_failure(error, request),
        })
    }

    fn outcome_of_failure(&mut self, error: Error, request: &Arc<LeaseRequest>) -> ReplyOutcome {
        let outcome = if self.state.is_some() || self.is_stopped {
            // A renewal is tried until the deadline. What is given back and refused for good is left to its end.
            let is_final = self.is_stopped && !error.is_transient();
            if is_final { ReplyOutcome::Ended } else { ReplyOutcome::Failed }
        } else {
            match error.code() {
                // Our turn came and went unheard. It is a new request now, unless it is one already.
                Some(Code::Expired) => {
                    if Arc::ptr_eq(request, &self.request) {
                        self.request = self.request.with_new_key();
                    }
                    ReplyOutcome::Failed
                }
                // The longest wait that a server takes is over, not ours.
                Some(Code::Held) if self.is_still_waiting() => ReplyOutcome::Failed,
                _ if error.is_transient() && self.was_reached => ReplyOutcome::Failed,
                // Whoever cannot be reached from the beginning is not there, or not where we look.
                _ => ReplyOutcome::Refused,
            }
        };
        self.last_error = Some(error);
        outcome
    }

    fn is_still_waiting(&self) -> bool {
        let remaining = self.deadline.map(|until| until.saturating_sub(boot_microseconds()));
        self.wait != WaitLimit::No
            && remaining.is_none_or(|remaining| remaining > 2 * to_microseconds(RESPONSE_MARGIN))
    }

    fn update_leases(&mut self, renewed: &[LeaseRenewal]) {
        let Some(state) = &self.state else { return };
        if self.keep_alive.has_ended() || renewed.is_empty() {
            return;
        }
        state.send_modify(|state| {
            state.leases = renewed.iter().map(|renewed| renewed.lease.clone()).collect();
            state.passports = renewed.iter().map(|renewed| renewed.passport.clone()).collect();
            state.waiters = renewed.iter().find_map(|renewed| renewed.lease.recall.clone());
        });
    }
}

/// Several leases live as long as the first of them to end.
fn valid_outcome(leases: impl Iterator<Item = (u64, u64)> + Clone) -> ReplyOutcome {
    let fence = Fence(leases.clone().next().map_or(0, |(fence, _)| fence));
    let valid_for =
        TickDuration::from_millis(leases.map(|(_, valid_for_ms)| valid_for_ms).min().unwrap_or(0));
    ReplyOutcome::Valid { fence, valid_for }
}
