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
        if !matches!(what, What::UnderWay) {
            self.acquiring.retain(|(other, _)| *other != attempt);
        }
        let outcome = match what {
            What::UnderWay => {
                self.was_reached = true;
                // Who does not wait in a queue is answered soon, or not at all.
                if !wish.waits() {
                    return;
                }
                Outcome::Queued
            }
            What::Granted(granted) => {
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
                Outcome::Over
            }
            What::Released => {
                self.last_error = None;
                Outcome::Over
            }
            What::Withdrawn => {
                self.abort_acquiring();
                Outcome::Over
            }
            What::Pending { is_in_line } => {
                // A place in the queue that we cannot leave is ours until our turn comes.
                if is_in_line {
                    self.until = None;
                }
                Outcome::Over
            }
            What::Failed(error) => self.failed(error, &wish),
        };
        self.step(Input::Replied { attempt, outcome });
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
