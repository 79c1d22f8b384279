//! What every projection of the ledger looks like.
// Programs outside this workspace use this: what it offers says what it is for.
#![warn(missing_docs)]

use crate::ledger::EventRecord;

/// Turns events into state, one after the other.
///
/// A reducer that meets an event it must refuse returns an error and leaves its state as it was.
pub trait Reducer {
    /// What the events add up to.
    type State;
    /// Why an event cannot be applied.
    type Error;

    /// A stable name, for checkpoints and messages.
    fn name(&self) -> &'static str;
    /// Applies one event. The same events in the same order always give the same state.
    fn apply(&mut self, event: &EventRecord, ctx: &ReducerContext) -> Result<(), Self::Error>;
    /// What the events so far add up to.
    fn state(&self) -> &Self::State;
    /// The same, to prune.
    fn state_mut(&mut self) -> &mut Self::State;
    /// Forgets everything, as before the first event.
    fn reset(&mut self);
}

/// Where in the ledger an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReducerContext {
    /// The event's sequence number.
    pub seq_id: u64,
}

impl ReducerContext {
    /// The context of the event at `seq_id`.
    pub fn new(seq_id: u64) -> Self {
        Self { seq_id }
    }
}
