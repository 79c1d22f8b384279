//! `tenure replay`.

use std::path::Path;
use std::str::FromStr;

use clap::Args;
use serde_json::{Value, json};
use tenure_core::kernel::{ClockReading, Event, KernelState, LeaseView, Tick, decode};
use tenure_core::lease::LeaseReducer;
use tenure_core::ledger::EventRecord;
use tenure_core::reducer::{Reducer as _, ReducerContext};
use tenure_core::rules::{is_expired, remaining};
use tenure_ledger::{Batch, OpenError, Seq, open_read_only};
use tenure_registrar::TickClock;
use tenure_registrar::runtime::{BootClock, Clock as _, Replay, ReplayError, start_replay};

use crate::config::LedgerLocation;
use crate::exit;
use crate::failure::Failure;
use crate::output::{Format, Table, tick_to_rfc3339};
use crate::terminal_message::ProgressLine;

/// Shows who held what at a moment: the state that the events up to it add up to.
///
/// It only reads, and may run while a server uses the ledger. A moment is a tick, in microseconds on the ledger's own
/// clock: `tenure log --json` shows the tick of each event. `last` is the tick of the newest event, `now` this moment
/// by the clock of this machine, if that is the one that the ledger was last written on.
///
/// Where nothing was pruned, a second reader adds up the same events by itself, and both must agree.
///
/// Example: tenure replay --at 1700000000 --data /var/lib/tenure
#[derive(Debug, Args)]
pub struct ReplayAt {
    /// The moment: a tick, `last` or `now`
    #[arg(long, value_name = "TICK")]
    at: PointInTime,
    #[command(flatten)]
    location: LedgerLocation,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PointInTime {
    At(Tick),
    Last,
    Now,
}

impl FromStr for PointInTime {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "last" => Ok(PointInTime::Last),
            "now" => Ok(PointInTime::Now),
            tick => tick
                .parse()
                .map(|tick| PointInTime::At(Tick(tick)))
                .map_err(|_| "not a tick, `last` or `now`"),
        }
    }
}

impl ReplayAt {
    /// Adds up what happened up to the moment.
    pub fn run(self) -> Result<(), Failure> {
        let data = self.location.existing_directory()?;
        let until = match self.at {
            PointInTime::At(tick) => tick,
            PointInTime::Last | PointInTime::Now => Tick(u64::MAX),
        };
        let past = replay(&data, until)?;
        let at = match self.at {
            PointInTime::At(tick) => tick,
            PointInTime::Last => past.state().now(),
            PointInTime::Now => now(past.state())?,
        };
        self.format.print(&as_json(&past, at), |_| as_text(&past, at))
    }
}

/// This moment on the ledger's clock. On another clock nothing is known of the time since the last event.
fn now(state: &KernelState) -> Result<Tick, Failure> {
    let clock = BootClock::new()
        .map_err(|error| Failure::new(exit::UNAVAILABLE, "this machine's clock cannot be read", &error))?;
    let reading = ClockReading { clock: clock.id(), microseconds: clock.microseconds() };
    Ok(TickClock::resume(state, &reading).last())
}

fn leases(state: &KernelState) -> impl Iterator<Item = LeaseView<'_>> {
    state.leases_from(tenure_core::kernel::Fence(0))
}

/// How many live, how many are over but not announced, and how many wait.
fn counts(state: &KernelState, at: Tick) -> (usize, usize, usize) {
    let live = leases(state).filter(|lease| !is_expired(at.0, lease.terms.expires_at.0)).count();
    let waiting = state.queue_tickets().filter(|waiting| !is_expired(at.0, waiting.until.0)).count();
    (live, state.lease_count() - live, waiting)
}

fn as_text(past: &HistoricalState, at: Tick) -> String {
    let state = past.state();
    let heads =
        ["LEASE", "RESOURCE", "HOLDER", "MODE", "FENCE", "ISSUED TICK", "EXPIRES TICK", "REMAINING MS"];
    let mut table = Table::with_header(&heads);
    for lease in leases(state) {
        let remaining_ms = remaining(at.0, lease.terms.expires_at.0) / 1_000;
        let is_expired = is_expired(at.0, lease.terms.expires_at.0);
        table.row([
            state.ledger_tag().lease_id(lease.fence),
            lease.resource.to_string(),
            lease.holder.to_string(),
            lease.terms.mode.as_str().to_owned(),
            lease.fence.0.to_string(),
            lease.terms.issued_at.0.to_string(),
            lease.terms.expires_at.0.to_string(),
            if is_expired { "over".to_owned() } else { remaining_ms.to_string() },
        ]);
    }
    let (live, expired, waiting) = counts(state, at);
    let time =
        state.clock().map_or_else(String::new, |clock| format!(", {}", tick_to_rfc3339(clock.anchor, at)));
    let second = if past.is_cross_checked() { "; a second reader agrees" } else { "" };
    format!(
        "{table}At tick {}{time}: {live} live, {expired} over but not announced, {waiting} waiting, {} ended since event \
         {}. {} events were added up{second}.\n",
        at.0, past.ended, past.first.0, past.events
    )
}

fn as_json(past: &HistoricalState, at: Tick) -> Value {
    let state = past.state();
    let time = |tick| state.clock().map(|clock| tick_to_rfc3339(clock.anchor, tick));
    let lease = |lease: LeaseView<'_>| {
        let is_expired = is_expired(at.0, lease.terms.expires_at.0);
        json!({
            "id": state.ledger_tag().lease_id(lease.fence),
            "resource": lease.resource.as_str(),
            "holder": lease.holder.as_str(),
            "principal": lease.principal.as_str(),
            "mode": lease.terms.mode.as_str(),
            "state": if is_expired { "OVER" } else { "ACTIVE" },
            "fence": lease.fence.0,
            "issuedTick": lease.terms.issued_at.0,
            "issuedAt": time(lease.terms.issued_at),
            "expiresTick": lease.terms.expires_at.0,
            "expiresAt": time(lease.terms.expires_at),
            "remainingMs": remaining(at.0, lease.terms.expires_at.0) / 1_000,
            "renewalCount": lease.terms.renewals,
        })
    };
    let (live, expired, waiting) = counts(state, at);
    json!({
        "tick": at.0,
        "at": time(at),
        "lastSeq": past.last.0,
        "firstSeq": past.first.0,
        "events": past.events,
        "secondOpinion": past.is_cross_checked(),
        "live": live,
        "over": expired,
        "waiting": waiting,
        "ended": past.ended,
        "leases": leases(state).map(lease).collect::<Vec<_>>(),
    })
}

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
