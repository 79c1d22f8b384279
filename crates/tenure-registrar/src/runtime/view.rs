//! Read access to the writer: its durable state, and the health of background work.

use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};
use tenure_core::kernel::{Event, KernelState, Tick};
use tenure_ledger::Seq;

use super::clock::Clock;
use super::feed::AppliedEvent;
use crate::tick_clock::TickClock;

/// A state of its own, to which each batch is applied once it is durable and before anybody is answered. A reader
/// waits for such an update at most, never for the disk.
pub struct StateView {
    state: RwLock<KernelState>,
    stamper: TickClock,
    clock: Arc<dyn Clock>,
}

impl StateView {
    pub(crate) fn new(state: KernelState, stamper: TickClock, clock: Arc<dyn Clock>) -> StateView {
        StateView { state: RwLock::new(state), stamper, clock }
    }

    /// Looks at what is durable. Whoever looks for long keeps the writer from its next answer.
    pub fn read<T>(&self, look: impl FnOnce(&KernelState) -> T) -> T {
        look(&self.state.read())
    }

    /// The tick of this moment: what is over by now is over, announced or not.
    pub fn now(&self) -> Tick {
        let mut stamper = self.stamper;
        let tick = stamper.stamp(self.clock.microseconds());
        tick.max(self.read(KernelState::now))
    }

    /// Applies durable events, of which `first` is the number of the first. `observe` runs after each of them, before
    /// any reader sees it.
    pub(crate) fn apply(&self, first: Seq, events: &[Event], observe: impl Fn(AppliedEvent<'_>)) {
        let mut state = self.state.write();
        for (seq, event) in (first.0..).zip(events) {
            let removed =
                state.apply_and_take(event).expect("what was applied once can be applied to the same state");
            observe(AppliedEvent { seq: Seq(seq), event, removed: removed.as_ref(), state: &state });
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct BackgroundHealth {
    /// Nearly always no: then nothing is locked.
    has_problem: AtomicBool,
    problem: Mutex<Option<String>>,
}

impl BackgroundHealth {
    pub(crate) fn set(&self, text: Option<String>) {
        self.has_problem.store(text.is_some(), Ordering::Release);
        *self.problem.lock() = text;
    }

    pub(crate) fn clear(&self) {
        if self.has_problem.load(Ordering::Acquire) {
            self.set(None);
        }
    }

    pub(crate) fn get(&self) -> Option<String> {
        self.problem.lock().clone()
    }
}

/// What happened, and everything that led to it, in one line.
pub(crate) fn format_error_chain(what: &str, error: &dyn Error) -> String {
    let mut text = format!("{what}: {error}");
    let mut source = error.source();
    while let Some(error) = source {
        write!(text, ": {error}").expect("writing into a string");
        source = error.source();
    }
    text
}
