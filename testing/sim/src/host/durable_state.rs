//! What is durable: what is written, what becomes of it when that fails, and what the next start finds.

use tenure_core::kernel::{HashSeed, KernelState};
use tenure_core::ledger::EventRecord;
use tenure_core::reducer::{Reducer, ReducerContext};
use tenure_registrar::AppendFailure;

use super::{ServerMachine, WriteResult, decode_event, empty_state};
use crate::invariants::{InvariantResult, Violation, ensure};
use crate::simulation_log::SimulationLog;

impl ServerMachine {
    pub(super) fn execute_write(
        &mut self,
        write: WriteResult,
    ) -> Result<Result<(), AppendFailure>, Violation> {
        let failure = match write {
            WriteResult::Written => None,
            WriteResult::Failed { failure, .. } => Some(failure),
        };
        let outcome = match &mut self.storage {
            Some(storage) if matches!(failure, None | Some(AppendFailure::OutcomeUnknown)) => {
                if failure.is_some() {
                    storage.schedule_fault();
                }
                storage.append(self.pending_write.as_deref().unwrap_or_default())?
            }
            _ => failure.map_or(Ok(()), Err),
        };
        match outcome {
            Ok(()) => {
                self.persist_pending()?;
                self.storage.as_mut().map_or(Ok(()), |storage| storage.run_maintenance(&self.follower))?;
            }
            Err(AppendFailure::OutcomeUnknown) => {
                self.mark_in_doubt(matches!(write, WriteResult::Failed { kept: true, .. }))?
            }
            Err(_) => self.pending_write = None,
        }
        Ok(outcome)
    }

    /// The process is gone from one instruction to the next. `kept`: the write under way reached the disk, where that
    /// is a plain one; a real one has its own way.
    pub fn crash(&mut self, kept: bool) -> InvariantResult {
        let is_there = match &mut self.storage {
            Some(storage) => storage.crash(self.pending_write.as_deref(), &self.follower)?,
            None => kept,
        };
        self.registrar = None;
        if is_there { self.persist_pending() } else { self.mark_in_doubt(false) }
    }

    /// Nobody knows what became of what is being written: on a real disk, until it is opened again.
    fn mark_in_doubt(&mut self, kept: bool) -> InvariantResult {
        if self.storage.is_none() && kept {
            return self.persist_pending();
        }
        let writing = self.pending_write.take().filter(|_| self.storage.is_some());
        let timed = |record: EventRecord| {
            decode_event(&record).map(|event| (record, self.true_time_of(event.occurred_at())))
        };
        let timed = writing.map(|records| records.into_iter().map(timed).collect::<Result<Vec<_>, _>>());
        // A start that did not come to its end leaves what was in doubt before it in doubt.
        self.in_doubt = timed.transpose()?.or(self.in_doubt.take());
        Ok(())
    }

    fn persist_pending(&mut self) -> InvariantResult {
        for record in self.pending_write.take().into_iter().flatten() {
            let true_time = self.true_time_of(decode_event(&record)?.occurred_at());
            self.persist(record, true_time)?;
        }
        self.model.check_between_batches()?;
        self.batches += 1;
        if self.batches.is_multiple_of(16) {
            self.check_state_against_reducer()?;
            self.model.work().check_sums(&self.follower)?;
        }
        if self.batches.is_multiple_of(1_024) {
            self.reducer.state_mut().prune_terminal_leases();
        }
        Ok(())
    }

    fn persist(&mut self, record: EventRecord, true_time: u64) -> InvariantResult {
        let event = decode_event(&record)?;
        let applied = self.follower.apply(&event);
        applied.map_err(|error| Violation(format!("a follower refuses {event:?}: {error}")))?;
        let context = ReducerContext::new(self.disk.len() as u64);
        let reduced = self.reducer.apply(&record, &context);
        reduced.map_err(|error| Violation(format!("the reducer refuses {event:?}: {error}")))?;
        self.model.apply_durable(&event, true_time)?;
        self.disk.push(record);
        Ok(())
    }

    /// The state that the disk adds up to; nothing if it is too full to start on.
    pub(super) fn replay_disk(&mut self, log: &mut SimulationLog) -> Result<Option<KernelState>, Violation> {
        // Another hash seed: what the state is must not depend on it.
        let hash_seed = HashSeed(self.incarnation, !self.incarnation);
        let Some(storage) = &mut self.storage else {
            return replay_records(empty_state(&self.limits, hash_seed), &self.disk).map(Some);
        };
        let Some(found) = storage.open(&self.limits, hash_seed, log)? else { return Ok(None) };
        self.resolve_in_doubt(found.after, &found.records, log)?;
        replay_records(found.state, &found.records).map(Some)
    }

    /// The disk holds all that was durable, and what was in doubt whole or not at all.
    fn resolve_in_doubt(
        &mut self,
        after: u64,
        records: &[EventRecord],
        log: &mut SimulationLog,
    ) -> InvariantResult {
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        let known = self.disk.get(after..).unwrap_or_default();
        let lost = || format!("{} events are durable, {} are there", self.disk.len(), after + records.len());
        ensure(after <= self.disk.len() && records.len() >= known.len(), lost)?;
        let (old, new) = records.split_at(known.len());
        ensure(old == known, || "what was durable is not what is there".into())?;
        let in_doubt = self.in_doubt.take().unwrap_or_default();
        if new.is_empty() {
            if !in_doubt.is_empty() {
                log.record_coverage("in doubt and not there");
            }
            return Ok(());
        }
        log.record_coverage("in doubt and there");
        ensure(new.iter().eq(in_doubt.iter().map(|(record, _)| record)), || "something was made up".into())?;
        in_doubt.into_iter().try_for_each(|(record, true_time)| self.persist(record, true_time))
    }
}

fn replay_records(mut state: KernelState, records: &[EventRecord]) -> Result<KernelState, Violation> {
    for record in records {
        let event = decode_event(record)?;
        let applied = state.apply(&event);
        applied.map_err(|error| Violation(format!("a replay refuses {event:?}: {error}")))?;
    }
    Ok(state)
}
