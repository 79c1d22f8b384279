//! What is under way to the device, by the change of hands that it came after.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

/// How many commands are under way, by generation.
pub(super) struct Flight(watch::Sender<BTreeMap<u64, usize>>);

impl Default for Flight {
    fn default() -> Self {
        Self(watch::Sender::new(BTreeMap::new()))
    }
}

impl Flight {
    /// Something is under way until the ticket is dropped.
    ///
    /// Whoever takes one looks at its pass *afterwards*: a change of hands that came before is seen by the look, and
    /// one that comes later sees the ticket.
    pub(super) fn begin(self: &Arc<Self>, generation: u64) -> Ticket {
        self.0.send_modify(|counts| *counts.entry(generation).or_default() += 1);
        Ticket { flight: self.clone(), generation }
    }

    /// Waits until nothing is under way that is older than this.
    pub(super) async fn quiet(&self, generation: u64) {
        let is_quiet = |counts: &BTreeMap<u64, usize>| counts.range(..generation).next().is_none();
        self.0.subscribe().wait_for(is_quiet).await.expect("the sender is here");
    }
}

pub(super) struct Ticket {
    flight: Arc<Flight>,
    generation: u64,
}

impl Ticket {
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.flight.0.send_modify(|counts| {
            if let Some(count) = counts.get_mut(&self.generation) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&self.generation);
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
        let flight = Arc::new(Flight::default());
        let is_quiet = |generation| flight.quiet(generation).now_or_never().is_some();
        assert!(is_quiet(7));
        let (one, other, newer) = (flight.begin(3), flight.begin(3), flight.begin(4));
        assert!(is_quiet(3) && !is_quiet(4) && !is_quiet(5));
        drop(one);
        assert!(!is_quiet(4));
        drop(other);
        assert!(is_quiet(4) && !is_quiet(5), "what came after the change is in nobody's way");
        drop(newer);
        assert!(is_quiet(u64::MAX));
    }
}
