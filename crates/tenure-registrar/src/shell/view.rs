//! What can be read without asking the writer: everything that is durable, and nothing else.

use std::sync::Arc;

use parking_lot::RwLock;
use tenure_core::kernel::{Event, State, Tick};

use super::clock::Clock;
use crate::stamper::Stamper;

/// A state of its own, to which each batch is applied once it is durable and before anybody is answered. A reader
/// waits for such an update at most, never for the disk.
pub struct View {
    state: RwLock<State>,
    stamper: Stamper,
    clock: Arc<dyn Clock>,
}

impl View {
    pub(crate) fn new(state: State, stamper: Stamper, clock: Arc<dyn Clock>) -> View {
        View { state: RwLock::new(state), stamper, clock }
    }

    /// Looks at what is durable. Whoever looks for long keeps the writer from its next answer.
    pub fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.read())
    }

    /// The tick of this moment: what is over by now is over, announced or not.
    pub fn now(&self) -> Tick {
        let mut stamper = self.stamper;
        let tick = stamper.stamp(self.clock.microseconds());
        tick.max(self.read(State::now))
    }

    /// Applies what is durable. `each` is shown every event with its place, and the state right before it.
    pub(crate) fn publish(&self, events: &[Event], each: impl Fn(u64, &Event, &State)) {
        let mut state = self.state.write();
        for (index, event) in (0..).zip(events) {
            each(index, event, &state);
            state.apply(event).expect("what was applied once can be applied to the same state");
        }
    }
}
