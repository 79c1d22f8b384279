//! What is under way to the device, by the change of hands that it came after.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

/// How many commands are under way, by generation.
pub(super) struct InFlight(watch::Sender<BTreeMap<u64, usize>>);

impl Default for InFlight {
    fn default() -> Self {
        Self(watch::Sender::new(BTreeMap::new()))
    }
}

impl InFlight {
    /// Something is under way until the ticket is dropped.
    ///
    /// Whoever takes one looks at its pass *afterwards*: a change of hands that came before is seen by the look, and
    /// one that comes later sees the ticket.
    pub(super) fn begin(self: &Arc<Self>, generation: u64) -> InFlightGuard {
        self.0.send_modify(|counts| *counts.entry(generation).or_default() += 1);
        InFlightGuard { in_flight: self.clone(), epoch: generation }
    }

    /// Waits until nothing is under way that is older than this.
    pub(super) async fn drain(&self, generation: u64) {
        let is_drained = |counts: &BTreeMap<u64, usize>| counts.range(..generation).next().is_none();
        self.0.subscribe().wait_for(is_drained).await.expect("the sender is here");
    }
}

pub(super) struct InFlightGuard {
    in_flight: Arc<InFlight>,
    epoch: u64,
}

impl InFlightGuard {
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.in_flight.0.send_modify(|counts| {
            if let Some(count) = counts.get_mut(&self.epoch) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&self.epoch);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    // Device and gateway check the fence at their own serial point.
    #[test]
    fn drain_returns_when_older_epochs_have_ended() {
        let in_flight = Arc::new(InFlight::default());
        let is_drained = |generation| in_flight.drain(generation).now_or_never().is_some();
        assert!(is_drained(7));
        let (one, other, newer) = (in_flight.begin(3), in_flight.begin(3), in_flight.begin(4));
        assert!(is_drained(3) && !is_drained(4) && !is_drained(5));
        drop(one);
        assert!(!is_drained(4));
        drop(other);
        assert!(is_drained(4) && !is_drained(5), "what came after the change is in nobody's way");
        drop(newer);
        assert!(is_drained(u64::MAX));
    }
}
