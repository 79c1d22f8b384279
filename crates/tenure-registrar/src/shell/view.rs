//! What others see of the writer: its state, and trouble.

use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};
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

#[derive(Debug, Default)]
pub(crate) struct Trouble {
    /// Nearly always no: then nothing is locked.
    is_there: AtomicBool,
    text: Mutex<Option<String>>,
}

impl Trouble {
    pub(crate) fn set(&self, text: Option<String>) {
        self.is_there.store(text.is_some(), Ordering::Release);
        *self.text.lock() = text;
    }

    pub(crate) fn clear(&self) {
        if self.is_there.load(Ordering::Acquire) {
            self.set(None);
        }
    }

    pub(crate) fn get(&self) -> Option<String> {
        self.text.lock().clone()
    }
}

/// What happened, and everything that led to it, in one line.
pub(crate) fn describe(what: &str, error: &dyn Error) -> String {
    let mut text = format!("{what}: {error}");
    let mut source = error.source();
    while let Some(error) = source {
        write!(text, ": {error}").expect("writing into a string");
        source = error.source();
    }
    text
}
