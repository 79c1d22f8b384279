//! Puts a copy of a ledger in the place of its original: what `tenure ledger restored` does.
//!
//! What the original did after the copy was made is unknown. So no number that it may have issued is used again,
//! what it may have signed differs from new signatures, and nothing is granted until all leases that it granted have expired.

use std::io;
use std::path::Path;

use tenure_core::kernel::{
    ClockAnchor, ClockReading, EncodeContext, Event, Fence, HashSeed, KernelState, Limits, Principal,
    RevocationCause, Tick, WaitEnd, encode,
};
use tenure_core::lease::REGISTRAR;
use tenure_core::ledger::EventRecord;
use tenure_core::rules::is_expired;
use tenure_ledger::signing::{KeyAdded, KeyEntry, KeyRetired, Leaf, LedgerId, LedgerSigningKey, sign_batch};
use tenure_ledger::{AppendError, BatchBytes, Ledger, LedgerRecovery, Seq};
use thiserror::Error;

use super::clock::Clock;
use super::key_file::{NextKey, load_key};
use super::service::{ServiceError, replay_recovery};
use crate::pending_batch::leaf_reference;
use crate::tick_clock::TickClock;

/// How many numbers are passed over: more than any ledger gave out between two copies.
const SKIPPED_FENCES: u64 = 1 << 40;

const CHUNK: usize = 1_000;

/// What is known beside the copy itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RestoreOptions {
    /// No lease is held any more: grants need not wait, and the leases in the copy are ended.
    pub no_holders: bool,
    /// A number that the original is known to have given out.
    pub above: Option<Fence>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreReport {
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
    FencesExhausted(Fence),
    #[error("the ledger cannot be written")]
    Append(#[from] AppendError),
    #[error("the data directory cannot be written")]
    Io(#[from] io::Error),
}

/// Puts a copy in the place of its original. `recovery` opens the copy in a new epoch; its keys are in `data`.
pub fn restore(
    data: &Path,
    mut recovery: Box<dyn LedgerRecovery>,
    limits: Limits,
    known: RestoreOptions,
    clock: &dyn Clock,
) -> Result<RestoreReport, RestoreFailure> {
    let longest = limits.max_ttl;
    let replay = replay_recovery(&mut *recovery, limits, HashSeed::default())?;
    if replay.keyring().first().is_none() {
        return Err(RestoreFailure::Empty);
    }
    let old_key = load_key(data, &replay)?;
    let ledger_id = replay.ledger();
    let copy_ended_at = replay.head().seq;
    let mut state = replay.into_state();
    let mut ledger = recovery.finish().map_err(ServiceError::from)?;
    let old_key = old_key.finish_rotation(data)?;
    let next_key = NextKey::create(data).map_err(ServiceError::from)?;
    let epoch = ledger.reader().epoch();

    let reading = ClockReading { clock: clock.id(), microseconds: clock.microseconds() };
    let at = TickClock::resume(&state, &reading).last();
    let fence = first_unused_fence(&state, epoch, known.above)?;
    let hold_until = if known.no_holders { at } else { at.saturating_add(longest) };
    let leases = state.lease_count();
    let before = state.clock().map_or(0, |clock| clock.anchor.wall_time_of(at));
    let wall_clock = clock.wall_nanoseconds();
    // On which clock this is: the time that is held back is counted from here, whatever clock the copy was written on.
    let resumed = Event::Resumed { at, reading, wall_anchor: wall_clock.max(before), wall_clock };
    let restored = Event::Restored { at, epoch, fence, hold_until };
    // All that must not be half done is one batch, signed by the key that still counts.
    let mut records: Vec<_> =
        [resumed, restored].into_iter().map(|event| record(&mut state, event)).collect();
    records.push(KeyEntry::Added(KeyAdded::new(ledger_id, next_key.key.public_key(), &old_key)).to_record());
    records.push(KeyEntry::Retired(KeyRetired::new(ledger_id, old_key.id(), &old_key)).to_record());
    append(&mut *ledger, ledger_id, &old_key, &records)?;
    for chunk in end_events(&state, at, known.no_holders).chunks(CHUNK) {
        let records: Vec<_> = chunk.iter().map(|event| record(&mut state, event.clone())).collect();
        append(&mut *ledger, ledger_id, &next_key.key, &records)?;
    }
    next_key.install()?;
    // Until then nothing else opens the copy, so a restore that was interrupted is begun again.
    ledger.close()?;
    let held_back_ms = hold_until.since(at).as_millis();
    Ok(RestoreReport { ledger: ledger_id, epoch, copy_ended_at, fence, held_back_ms, leases })
}

/// The same copy may be restored twice: each epoch has numbers of its own.
fn first_unused_fence(
    state: &KernelState,
    epoch: u64,
    above: Option<Fence>,
) -> Result<Fence, RestoreFailure> {
    let known = state.last_fence().max(above.unwrap_or_default());
    let beyond = known.0.saturating_add(SKIPPED_FENCES).max(SKIPPED_FENCES.saturating_mul(epoch - 1));
    let fence = Fence(beyond);
    if fence < Fence::MAX { Ok(fence) } else { Err(RestoreFailure::FencesExhausted(known)) }
}

/// Who waited is gone, and perhaps also who held.
fn end_events(state: &KernelState, at: Tick, no_holders: bool) -> Vec<Event> {
    let wait_ends = state.queue_tickets().map(|waiting| {
        let end = if is_expired(at.0, waiting.until.0) { WaitEnd::TimedOut } else { WaitEnd::Gone };
        Event::Left { ticket: waiting.ticket, at, end }
    });
    let by = Principal::parse(REGISTRAR).expect("the registrar has a name");
    let leases = state.leases_from(Fence(0)).filter(|_| no_holders).map(|lease| {
        if is_expired(at.0, lease.terms.expires_at.0) {
            return Event::Expired { lease: lease.fence, at };
        }
        let detail = "the ledger was restored, and nobody holds anything".into();
        Event::Revoked { lease: lease.fence, at, cause: RevocationCause::Revoked, by: by.clone(), detail }
    });
    wait_ends.chain(leases).collect()
}

fn record(state: &mut KernelState, event: Event) -> EventRecord {
    state.apply(&event).expect("what follows from the state can be applied to it");
    let anchor = state.clock().map_or(ClockAnchor::default(), |clock| clock.anchor);
    encode(&event, EncodeContext { tag: state.ledger_tag(), anchor, signature: &leaf_reference(0) })
}

/// Writes a batch in which nothing is granted.
fn append(
    ledger: &mut dyn Ledger,
    id: LedgerId,
    key: &LedgerSigningKey,
    records: &[EventRecord],
) -> Result<(), AppendError> {
    let before = ledger.head();
    let unsigned = BatchBytes::new(Seq(before.seq.0 + 1), records);
    let leaf = Leaf::of_batch(id, before.hash, &unsigned);
    let signed = sign_batch(key, id, unsigned.first().0, &[leaf]).expect("one leaf makes a tree");
    ledger.append_batch(&unsigned.with_signature(&signed.signature().to_bytes()))?;
    Ok(())
}
