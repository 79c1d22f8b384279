//! Adds up the events of a ledger as far as a moment, twice where that can be done.

use std::path::Path;

use tenure_core::kernel::{Event, KernelState, Tick, decode};
use tenure_core::lease::LeaseReducer;
use tenure_core::ledger::EventRecord;
use tenure_core::reducer::{Reducer as _, ReducerContext};
use tenure_ledger::{Batch, OpenError, Seq, open_read_only};
use tenure_registrar::runtime::{Replay, ReplayError, start_replay};

use crate::failure::Failure;
use crate::terminal_message::ProgressLine;

/// The second reader remembers every lease that ended; every so many events it forgets them.
const FORGET_AFTER: u64 = 1 << 16;

/// How often to begin again when files go away meanwhile.
const TRIES: usize = 3;

/// What the events up to a moment add up to.
pub struct HistoricalState {
    replay: Replay,
    /// The second opinion, where every event is there.
    reducer: Option<LeaseReducer>,
    /// The first event that was added, and the last.
    pub first: Seq,
    pub last: Seq,
    pub events: u64,
    /// How many leases ended among them.
    pub ended: u64,
}

impl HistoricalState {
    pub fn state(&self) -> &KernelState {
        self.replay.state()
    }

    /// Whether another reader came to the same.
    pub fn is_cross_checked(&self) -> bool {
        self.reducer.is_some()
    }

    /// Adds the events of a batch that happened at `until` or before. Says whether that was all of them.
    fn add(&mut self, batch: &Batch, until: Tick) -> Result<bool, Failure> {
        let mut kept = 0;
        for (number, record) in (batch.first.0..).zip(&batch.records) {
            let at = Seq(number);
            let event = decode(record, self.replay.ledger().tag())
                .map_err(|source| ReplayError::Decode { at, source })?;
            if event.as_ref().is_some_and(|event| event.occurred_at() > until) {
                break;
            }
            kept += 1;
            self.second_opinion(at, record)?;
            self.ended += u64::from(event.is_some_and(|event| is_end(&event)));
        }
        if kept > 0 {
            let records = batch.records[..kept].to_vec();
            let part = Batch { records, signature: Vec::new(), ..*batch };
            self.replay.apply(&part)?;
            self.last = part.last();
            self.events += kept as u64;
        }
        Ok(kept == batch.records.len())
    }

    fn second_opinion(&mut self, at: Seq, record: &EventRecord) -> Result<(), Failure> {
        let Some(reducer) = &mut self.reducer else { return Ok(()) };
        if at.0.is_multiple_of(FORGET_AFTER) {
            reducer.state_mut().prune_terminal_leases();
        }
        reducer.apply(record, &ReducerContext::new(at.0)).map_err(|error| {
            Failure::negative_result(&format!("the second reader refuses event {}: {error}", at.0))
        })
    }

    fn check_agreement(&self) -> Result<(), Failure> {
        let Some(reducer) = &self.reducer else { return Ok(()) };
        let differs = |difference| {
            Failure::negative_result(&format!("the two readers of the ledger disagree: {difference}"))
        };
        self.replay.state().check_against_reducer(reducer.state()).map_err(differs)
    }
}

/// Adds up what happened up to and at `until`.
pub fn replay(data: &Path, until: Tick) -> Result<HistoricalState, Failure> {
    for _ in 1..TRIES {
        match replay_once(data, until) {
            Err(ReplayFailure::Read(error)) if error.is_transient() => {}
            done => return done.map_err(ReplayFailure::into_failure),
        }
    }
    replay_once(data, until).map_err(ReplayFailure::into_failure)
}

fn replay_once(data: &Path, until: Tick) -> Result<HistoricalState, ReplayFailure> {
    let archive = open_read_only(data)?.tolerate_active_writer();
    let replay = start_replay(&*archive).map_err(Failure::from)?;
    let is_whole = archive.oldest_checkpoint().is_none();
    if !is_whole && replay.now() > until {
        let first = replay.now().0;
        return Err(Failure::negative_result(&format!(
            "what happened before tick {first} was pruned; {first} is the first tick that can be replayed"
        ))
        .into());
    }
    let before = replay.head().seq;
    let reducer = is_whole.then(LeaseReducer::new);
    let mut past =
        HistoricalState { replay, reducer, first: Seq(before.0 + 1), last: before, events: 0, ended: 0 };
    let mut batches = archive.batches();
    let mut progress = ProgressLine::new();
    while let Some(placed) = batches.next_batch()? {
        let (read, all) = batches.progress();
        progress.show(&format!("segment {read} of {all}"));
        if placed.batch.last() > before && !past.add(&placed.batch, until)? {
            break;
        }
    }
    past.check_agreement()?;
    Ok(past)
}

fn is_end(event: &Event) -> bool {
    matches!(event, Event::Released { .. } | Event::Expired { .. } | Event::Revoked { .. })
}

/// Why it did not come to an end: something that may pass, or not.
enum ReplayFailure {
    Read(OpenError),
    Other(Failure),
}

impl ReplayFailure {
    fn into_failure(self) -> Failure {
        match self {
            ReplayFailure::Read(error) => error.into(),
            ReplayFailure::Other(failure) => failure,
        }
    }
}

impl From<OpenError> for ReplayFailure {
    fn from(error: OpenError) -> Self {
        ReplayFailure::Read(error)
    }
}

impl From<Failure> for ReplayFailure {
    fn from(failure: Failure) -> Self {
        ReplayFailure::Other(failure)
    }
}
