//! What an answer means to the keeper.

use std::sync::Arc;

use tenure_api::{Code, Renewed};
use tenure_core::kernel::{Fence, Span};

use super::driver::{Driver, SLACK, micros};
use super::holding::{Wait, Wish};
use super::requests::What;
use crate::clock::boot_microseconds;
use crate::error::Error;
use crate::keeper::{Attempt, Input, Outcome};

/// What one request led to.
pub(super) struct Heard {
    pub(super) attempt: Attempt,
    pub(super) wish: Arc<Wish>,
    pub(super) what: What,
}

impl Driver {
    pub(super) fn hear(&mut self, Heard { attempt, wish, what }: Heard) {
        let was_acquiring = self.acquiring.len();
        if !matches!(what, What::UnderWay) {
            self.acquiring.retain(|(other, _)| *other != attempt);
        }
        let is_lost = matches!(what, What::Failed(Error::Unknown { .. }));
        // The server may come to it only now, after it let us out of the queue.
        self.is_in_doubt |= is_lost && self.acquiring.len() < was_acquiring;
        if let Some(outcome) = self.outcome(what, &wish, attempt) {
            self.step(Input::Replied { attempt, outcome });
        }
        let is_clear = self.acquiring.is_empty() && !self.is_in_doubt;
        if let Some(attempt) = self.left.take_if(|_| is_clear) {
            self.step(Input::Replied { attempt, outcome: Outcome::Over });
        }
    }

    /// What the keeper is told; nothing, if it shall ask again.
    fn outcome(&mut self, what: What, wish: &Arc<Wish>, attempt: Attempt) -> Option<Outcome> {
        Some(match what {
            What::UnderWay => {
                self.was_reached = true;
                // Who does not wait in a queue is answered soon, or not at all.
                if !wish.waits() {
                    return None;
                }
                Outcome::Queued
            }
            What::Granted(granted) => {
                // Whatever else is under way asks for the same under the same key.
                self.abort_acquiring();
                let outcome =
                    valid(granted.iter().map(|granted| (granted.lease.fence, granted.valid_for_ms)));
                self.granted.insert(Fence(granted[0].lease.fence), Arc::new(granted));
                outcome
            }
            What::Renewed(renewed) => {
                self.renewed(&renewed);
                valid(renewed.iter().map(|renewed| (renewed.lease.fence, renewed.valid_for_ms)))
            }
            What::Over(how) => {
                self.how_it_ended = Some(how);
                let several = self.granted.values().find(|granted| granted.len() > 1);
                self.left_over = several.filter(|_| !self.is_stopped).cloned();
                Outcome::Over
            }
            What::Released => {
                self.last_error = None;
                if let Some(released) = self.released.take() {
                    let _ = released.send(Ok(()));
                }
                Outcome::Over
            }
            // A request that is still on its way would get us into the queue again. Only when each has been answered
            // is this the last word; until then we look again.
            What::Withdrawn => {
                if std::mem::take(&mut self.is_in_doubt) {
                    return None;
                }
                if !self.acquiring.is_empty() {
                    self.left = Some(attempt);
                    return None;
                }
                Outcome::Over
            }
            What::Pending { is_in_line: false } => return None,
            // A place in the queue that we cannot leave is ours until our turn comes.
            What::Pending { is_in_line: true } => {
                self.until = None;
                Outcome::Over
            }
            What::Failed(error) => self.failed(error, wish),
        })
    }

    fn failed(&mut self, error: Error, wish: &Arc<Wish>) -> Outcome {
        let outcome = if self.state.is_some() || self.is_stopped {
            // A renewal is tried until the deadline. What is given back and refused for good is left to its end.
            let is_final = self.is_stopped && !error.passes();
            if is_final { Outcome::Over } else { Outcome::Failed }
        } else {
            match error.code() {
                // Our turn came and went unheard. It is a new wish now, unless it is one already.
                Some(Code::Expired) => {
                    if Arc::ptr_eq(wish, &self.wish) {
                        self.wish = self.wish.anew();
                    }
                    Outcome::Failed
                }
                // The longest wait that a server takes is over, not ours.
                Some(Code::Held) if self.waits_on() => Outcome::Failed,
                _ if error.passes() && self.was_reached => Outcome::Failed,
                // Whoever cannot be reached from the beginning is not there, or not where we look.
                _ => Outcome::Refused,
            }
        };
        self.last_error = Some(error);
        outcome
    }

    fn waits_on(&self) -> bool {
        let left = self.until.map(|until| until.saturating_sub(boot_microseconds()));
        self.wait != Wait::No && left.is_none_or(|left| left > 2 * micros(SLACK))
    }

    fn renewed(&mut self, renewed: &[Renewed]) {
        let Some(state) = &self.state else { return };
        if self.keeper.is_over() || renewed.is_empty() {
            return;
        }
        state.send_modify(|state| {
            state.leases = renewed.iter().map(|renewed| renewed.lease.clone()).collect();
            state.passports = renewed.iter().map(|renewed| renewed.passport.clone()).collect();
            state.recall = renewed.iter().find_map(|renewed| renewed.lease.recall.clone());
        });
    }
}

/// Several leases live as long as the first of them to end.
fn valid(leases: impl Iterator<Item = (u64, u64)> + Clone) -> Outcome {
    let fence = Fence(leases.clone().next().map_or(0, |(fence, _)| fence));
    let valid_for = Span::from_millis(leases.map(|(_, valid_for_ms)| valid_for_ms).min().unwrap_or(0));
    Outcome::Valid { fence, valid_for }
}
