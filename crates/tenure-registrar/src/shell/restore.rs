//! Puts a copy of a ledger in the place of its original: what `tenure ledger restored` does.
//!
//! What the original did after the copy was made is unknown. So no number that it may have given out is used again,
//! what it may have signed is told from what is signed from now on, and nothing is granted until whatever it granted
//! is over.

use std::io;
use std::path::Path;

use tenure_core::kernel::{
    Anchor, Cause, ClockReading, Event, Fence, HashKey, Limits, Principal, Stamp, State, Tick, WaitEnd,
    encode,
};
use tenure_core::lease::REGISTRAR;
use tenure_core::ledger::EventRecord;
use tenure_core::rules::time::is_over;
use tenure_ledger::embedded::{Opening, Options};
use tenure_ledger::signing::{KeyAdded, KeyEntry, KeyRetired, Leaf, LedgerId, NodeKey, seal_batch};
use tenure_ledger::{AppendError, BatchBytes, Ledger, Seq};
use thiserror::Error;

use super::clock::Clock;
use super::key_file::{NextKey, find_key};
use super::service::{ServiceError, replay_opening};
use crate::batch::leaf_reference;
use crate::stamper::Stamper;

/// How many numbers are passed over: more than any ledger gave out between two copies.
const PASSED_OVER: u64 = 1 << 40;

const CHUNK: usize = 1_000;

/// What is known beside the copy itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RestoreOptions {
    /// Nobody holds anything any more: grants need not wait, and what the copy says is held is over.
    pub nobody_holds: bool,
    /// A number that the original is known to have given out.
    pub above: Option<Fence>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    pub ledger: LedgerId,
    pub epoch: u64,
    pub copy_ended_at: Seq,
    /// No number up to this one is ever given out again.
    pub fence: Fence,
    /// For how many milliseconds nothing is granted.
    pub held_back_ms: u64,
    /// How many leases live in the copy.
    pub leases: usize,
}

/// Why the copy could not take its original's place. It can be tried again.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RestoreFailure {
    /// The copy does not open, or does not add up.
    #[error(transparent)]
    Open(#[from] ServiceError),
    #[error("the copy holds no events: there is nothing to go on with; start on an empty directory instead")]
    Empty,
    /// All numbers would be used up.
    #[error("after fence {} no numbers are left to go on with", .0.0)]
    NoFencesLeft(Fence),
    #[error("the ledger cannot be written")]
    Append(#[from] AppendError),
    #[error("the data directory cannot be written")]
    Io(#[from] io::Error),
}

/// Puts the copy in `data` in the place of its original.
pub fn restore(
    data: &Path,
    options: Options,
    limits: Limits,
    known: RestoreOptions,
    clock: &dyn Clock,
) -> Result<Restored, RestoreFailure> {
    let failed = |error| RestoreFailure::Open(ServiceError::from(error));
    let mut opening = Opening::begin_restoring(data, options).map_err(failed)?;
    let longest = limits.longest_ttl;
    let replay = replay_opening(&mut opening, limits, HashKey::default())?;
    if replay.keyring().first().is_none() {
        return Err(RestoreFailure::Empty);
    }
    let old_key = find_key(data, &replay)?;
    let ledger_id = replay.ledger();
    let copy_ended_at = replay.head().seq;
    let mut state = replay.into_state();
    let mut ledger = opening.finish().map_err(failed)?;
    let old_key = old_key.settle(data)?;
    let next_key = NextKey::make(data).map_err(ServiceError::from)?;
    let epoch = ledger.identity().epoch;

    let reading = ClockReading { clock: clock.id(), microseconds: clock.microseconds() };
    let at = Stamper::resume(&state, &reading).last();
    let fence = passed_over(&state, epoch, known.above)?;
    let hold_until = if known.nobody_holds { at } else { at.saturating_add(longest) };
    let leases = state.live_leases();
    let before = state.clock().map_or(0, |clock| clock.anchor.wall_of(at));
    let wall_clock = clock.wall();
    // On which clock this is: the time that is held back is counted from here, whatever clock the copy was written on.
    let resumed = Event::Resumed { at, reading, wall_anchor: wall_clock.max(before), wall_clock };
    let restored = Event::Restored { at, epoch, fence, hold_until };
    // All that must not be half done is one batch, signed by the key that still counts.
    let mut records: Vec<_> =
        [resumed, restored].into_iter().map(|event| record(&mut state, event)).collect();
    records.push(KeyEntry::Added(KeyAdded::new(ledger_id, next_key.key.public_key(), &old_key)).to_record());
    records.push(KeyEntry::Retired(KeyRetired::new(ledger_id, old_key.id(), &old_key)).to_record());
    append(&mut ledger, ledger_id, &old_key, &records)?;
    for chunk in ends(&state, at, known.nobody_holds).chunks(CHUNK) {
        let records: Vec<_> = chunk.iter().map(|event| record(&mut state, event.clone())).collect();
        append(&mut ledger, ledger_id, &next_key.key, &records)?;
    }
    next_key.keep()?;
    ledger.settle_here()?;
    ledger.close()?;
    let held_back_ms = hold_until.since(at).as_millis();
    Ok(Restored { ledger: ledger_id, epoch, copy_ended_at, fence, held_back_ms, leases })
}

/// The same copy may be restored twice: each epoch has numbers of its own.
fn passed_over(state: &State, epoch: u64, above: Option<Fence>) -> Result<Fence, RestoreFailure> {
    let known = state.last_fence().max(above.unwrap_or_default());
    let beyond = known.0.saturating_add(PASSED_OVER).max(PASSED_OVER.saturating_mul(epoch - 1));
    let fence = Fence(beyond);
    if fence < Fence::MAX { Ok(fence) } else { Err(RestoreFailure::NoFencesLeft(known)) }
}

/// Who waited is gone, and perhaps also who held.
fn ends(state: &State, at: Tick, nobody_holds: bool) -> Vec<Event> {
    let waits = state.tickets().map(|waiting| {
        let end = if is_over(at.0, waiting.until.0) { WaitEnd::TimedOut } else { WaitEnd::Gone };
        Event::Left { ticket: waiting.ticket, at, end }
    });
    let by = Principal::parse(REGISTRAR).expect("the registrar has a name");
    let leases = state.leases_from(Fence(0)).filter(|_| nobody_holds).map(|lease| {
        if is_over(at.0, lease.terms.expires_at.0) {
            return Event::Expired { lease: lease.fence, at };
        }
        let detail = "the ledger was restored, and nobody holds anything".into();
        Event::Revoked { lease: lease.fence, at, cause: Cause::Revoked, by: by.clone(), detail }
    });
    waits.chain(leases).collect()
}

fn record(state: &mut State, event: Event) -> EventRecord {
    state.apply(&event).expect("what follows from the state can be applied to it");
    let anchor = state.clock().map_or(Anchor::default(), |clock| clock.anchor);
    encode(&event, Stamp { tag: state.tag(), anchor, signature: &leaf_reference(0) })
}

/// Writes a batch in which nothing is granted.
fn append(
    ledger: &mut dyn Ledger,
    id: LedgerId,
    key: &NodeKey,
    records: &[EventRecord],
) -> Result<(), AppendError> {
    let before = ledger.head();
    let unsealed = BatchBytes::new(Seq(before.seq.0 + 1), records);
    let leaf = Leaf::of_batch(id, before.hash, &unsealed);
    let sealed = seal_batch(key, id, unsealed.first().0, &[leaf]).expect("one leaf makes a tree");
    ledger.append_batch(&unsealed.sealed(&sealed.seal().to_bytes()))?;
    Ok(())
}
