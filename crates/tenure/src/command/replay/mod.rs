//! `tenure replay`.

use std::str::FromStr;

use clap::Args;
use serde_json::{Value, json};
use tenure_core::kernel::{ClockReading, KernelState, LeaseView, Tick};
use tenure_core::rules::time::{is_expired, remaining};
use tenure_registrar::TickClock;
use tenure_registrar::runtime::{BootClock, Clock as _};

use self::historical_state::HistoricalState;
use crate::configuration::LedgerLocation;
use crate::exit;
use crate::failure::Failure;
use crate::output::{Format, Table, tick_to_rfc3339};

mod historical_state;

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
        let past = historical_state::replay(&data, until)?;
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
