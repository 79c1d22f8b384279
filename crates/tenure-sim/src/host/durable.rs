//! What is durable: what is written, what becomes of it when that fails, and what the next start finds.

use tenure_core::kernel::{HashKey, State};
use tenure_core::ledger::EventRecord;
use tenure_core::reducer::{Reducer, ReducerContext};
use tenure_registrar::AppendFailure;

use super::{Host, Write, fresh, read};
use crate::laws::{Lawful, Violation, law};
use crate::log::Log;

impl Host {
    pub(super) fn write_out(&mut self, write: Write) -> Result<Result<(), AppendFailure>, Violation> {
        let failure = match write {
            Write::Done => None,
            Write::Failed { failure, .. } => Some(failure),
        };
        let outcome = match &mut self.storage {
            Some(storage) if matches!(failure, None | Some(AppendFailure::Unknown)) => {
                if failure.is_some() {
                    storage.break_soon();
                }
                storage.append(self.writing.as_deref().unwrap_or_default())?
            }
            _ => failure.map_or(Ok(()), Err),
        };
        match outcome {
            Ok(()) => {
                self.keep_written()?;
                self.storage.as_mut().map_or(Ok(()), |storage| storage.look_after(&self.follower))?;
            }
            Err(AppendFailure::Unknown) => self.doubt(matches!(write, Write::Failed { kept: true, .. }))?,
            Err(_) => self.writing = None,
        }
        Ok(outcome)
    }

    /// The process is gone from one instruction to the next. `kept`: the write under way reached the disk, where that
    /// is a plain one; a real one has its own way.
    pub fn crash(&mut self, kept: bool) -> Lawful {
        let is_there = match &mut self.storage {
            Some(storage) => storage.crash(self.writing.as_deref(), &self.follower)?,
            None => kept,
        };
        self.registrar = None;
        if is_there { self.keep_written() } else { self.doubt(false) }
    }

    /// Nobody knows what became of what is being written: on a real disk, until it is opened again.
    fn doubt(&mut self, kept: bool) -> Lawful {
        if self.storage.is_none() && kept {
            return self.keep_written();
        }
        let writing = self.writing.take().filter(|_| self.storage.is_some());
        let timed = |record: EventRecord| read(&record).map(|event| (record, self.true_time_of(event.at())));
        let timed = writing.map(|records| records.into_iter().map(timed).collect::<Result<Vec<_>, _>>());
        // A start that did not come to its end leaves what was in doubt before it in doubt.
        self.in_doubt = timed.transpose()?.or(self.in_doubt.take());
        Ok(())
    }

    fn keep_written(&mut self) -> Lawful {
        for record in self.writing.take().into_iter().flatten() {
            let true_time = self.true_time_of(read(&record)?.at());
            self.keep(record, true_time)?;
        }
        self.laws.all_is_in_order()?;
        self.batches += 1;
        if self.batches.is_multiple_of(16) {
            self.check_agreement()?;
        }
        if self.batches.is_multiple_of(1_024) {
            self.reducer.state_mut().prune_terminal_leases();
        }
        Ok(())
    }

    fn keep(&mut self, record: EventRecord, true_time: u64) -> Lawful {
        let event = read(&record)?;
        let applied = self.follower.apply(&event);
        applied.map_err(|misfit| Violation(format!("a follower refuses {event:?}: {misfit}")))?;
        let context = ReducerContext::new(self.disk.len() as u64);
        let reduced = self.reducer.apply(&record, &context);
        reduced.map_err(|error| Violation(format!("the reducer refuses {event:?}: {error}")))?;
        self.laws.durable(&event, true_time)?;
        self.disk.push(record);
        Ok(())
    }

    /// The state that the disk adds up to; nothing if it is too full to start on.
    pub(super) fn replay(&mut self, log: &mut Log) -> Result<Option<State>, Violation> {
        // Another hash key: what the state is must not depend on it.
        let key = HashKey(self.incarnation, !self.incarnation);
        let Some(storage) = &mut self.storage else {
            return replayed(fresh(&self.limits, key), &self.disk).map(Some);
        };
        let Some(found) = storage.open(&self.limits, key, log)? else { return Ok(None) };
        self.settle(found.after, &found.records, log)?;
        replayed(found.state, &found.records).map(Some)
    }

    /// The disk holds all that was durable, and what was in doubt whole or not at all.
    fn settle(&mut self, after: u64, records: &[EventRecord], log: &mut Log) -> Lawful {
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        let known = self.disk.get(after..).unwrap_or_default();
        let lost = || format!("{} events are durable, {} are there", self.disk.len(), after + records.len());
        law(after <= self.disk.len() && records.len() >= known.len(), lost)?;
        let (old, new) = records.split_at(known.len());
        law(old == known, || "what was durable is not what is there".into())?;
        let in_doubt = self.in_doubt.take().unwrap_or_default();
        if new.is_empty() {
            if !in_doubt.is_empty() {
                log.count("in doubt and not there");
            }
            return Ok(());
        }
        log.count("in doubt and there");
        law(new.iter().eq(in_doubt.iter().map(|(record, _)| record)), || "something was made up".into())?;
        in_doubt.into_iter().try_for_each(|(record, true_time)| self.keep(record, true_time))
    }
}

fn replayed(mut state: State, records: &[EventRecord]) -> Result<State, Violation> {
    for record in records {
        let event = read(record)?;
        let applied = state.apply(&event);
        applied.map_err(|misfit| Violation(format!("a replay refuses {event:?}: {misfit}")))?;
    }
    Ok(state)
}
