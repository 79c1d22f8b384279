//! A lease as the events so far describe it.

use std::fmt;

use super::LeaseError;
use crate::rules::{is_expired, remaining};

/// One actor's exclusive claim on one work item, from a tick to a tick.
///
/// Half-open: at its expiry it is over. Ticks decide; the wall-clock columns are for people, for audit,
/// and for leases from before there were ticks. A lease without ticks counts as expired wherever ticks
/// are asked for (SEC-CTRL-FAC-0015): what cannot be proven alive is not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lease {
    /// INV-0301: names this lease and never another.
    pub lease_id: String,
    /// What is claimed.
    pub work_id: String,
    /// Who claims it.
    pub actor_id: String,
    /// Where it is in its life.
    pub state: LeaseState,
    /// When it was issued, in Unix nanoseconds.
    pub issued_at: u64,
    /// When it is over, in Unix nanoseconds. INV-0302: after `issued_at`.
    pub expires_at: u64,
    /// When it was issued, on the registrar's clock.
    pub issued_at_tick: Option<HtfTick>,
    /// When it is over, on the registrar's clock. Present exactly when `issued_at_tick` is, at the same rate.
    pub expires_at_tick: Option<HtfTick>,
    /// The registrar's signature of the issue, or of the latest renewal.
    pub registrar_signature: Vec<u8>,
    /// How often it was renewed. INV-0303: stays at its largest value once it is there.
    pub renewal_count: u32,
    /// When it was last renewed, in Unix nanoseconds; see [`Lease::wall_time_of`] for how that is known.
    pub last_renewed_at: Option<u64>,
    /// Why it was given back, if it was.
    pub release_reason: Option<ReleaseReason>,
    /// When it ended, in Unix nanoseconds; never after `expires_at`, so that pruning always comes round to it.
    pub terminated_at: Option<u64>,
}

impl Lease {
    /// Whether somebody holds it. That its time is up does not change this; an event does.
    pub const fn is_active(&self) -> bool {
        matches!(self.state, LeaseState::Active)
    }

    /// CTR-0301: whether an active lease is over at `tick`; an ended one is not *expired*, it has ended.
    ///
    /// Whatever cannot be compared is expired, in any state: a lease without ticks, or a `tick` of another
    /// rate than the lease's. INV-0305: no wall clock has a say in it.
    pub fn is_expired_at_tick(&self, tick: &HtfTick) -> bool {
        match self.expires_at_tick {
            Some(end) if end.same_clock(*tick) => self.is_active() && is_expired(tick.value(), end.value()),
            _ => true,
        }
    }

    /// CTR-0302: how many ticks are left at `tick`; none where ticks are missing or of another rate.
    pub fn ticks_remaining(&self, tick: &HtfTick) -> u64 {
        match self.expires_at_tick {
            Some(end) if end.same_clock(*tick) => remaining(tick.value(), end.value()),
            _ => 0,
        }
    }

    /// CTR-0304: whether an active lease is over at the Unix nanosecond `now`.
    #[deprecated(note = "a wall clock can be set; ask is_expired_at_tick")]
    pub fn is_expired_at(&self, now: u64) -> bool {
        self.is_expired_by_wall_clock(now)
    }

    /// CTR-0305: how many nanoseconds are left at the Unix nanosecond `now`.
    #[deprecated(note = "a wall clock can be set; ask ticks_remaining")]
    pub fn time_remaining(&self, now: u64) -> u64 {
        remaining(now, self.expires_at)
    }

    /// CTR-0303: what one shows in a list: everything but the bytes of the signature.
    pub fn summary(&self) -> LeaseSummary {
        LeaseSummary {
            lease_id: self.lease_id.clone(),
            work_id: self.work_id.clone(),
            actor_id: self.actor_id.clone(),
            state: self.state,
            issued_at: self.issued_at,
            expires_at: self.expires_at,
            expires_at_tick: self.expires_at_tick,
            renewal_count: self.renewal_count,
            release_reason: self.release_reason,
            terminated_at: self.terminated_at,
        }
    }

    /// The Unix nanosecond at which something happened to this lease that an event dates with `tick`.
    ///
    /// Counted from the issue, of which both the tick and the wall time are known. Where that is not
    /// possible (the lease has no ticks, or `tick` is from before it was issued, as the 0 of an event that
    /// does not say) it is the latest moment at which it can rightly have happened: the lease's end. It is
    /// never later than that, so whoever writes the event cannot put off the day the lease is pruned.
    pub fn wall_time_of(&self, tick: u64) -> u64 {
        self.issued_at_tick
            .and_then(|issued| issued.nanoseconds_until(tick))
            .map_or(self.expires_at, |elapsed| self.issued_at.saturating_add(elapsed).min(self.expires_at))
    }

    pub(super) fn is_expired_by_wall_clock(&self, now: u64) -> bool {
        self.is_active() && is_expired(now, self.expires_at)
    }
}

/// A lease without the bytes of its signature; see [`Lease::summary`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseSummary {
    /// Which lease.
    pub lease_id: String,
    /// What is claimed.
    pub work_id: String,
    /// Who claims it.
    pub actor_id: String,
    /// Where it is in its life.
    pub state: LeaseState,
    /// When it was issued, in Unix nanoseconds.
    pub issued_at: u64,
    /// When it is over, in Unix nanoseconds.
    pub expires_at: u64,
    /// When it is over, on the registrar's clock.
    pub expires_at_tick: Option<HtfTick>,
    /// How often it was renewed.
    pub renewal_count: u32,
    /// Why it was given back, if it was.
    pub release_reason: Option<ReleaseReason>,
    /// When it ended, in Unix nanoseconds.
    pub terminated_at: Option<u64>,
}

/// Where a lease is in its life: it begins active, ends once, and stays ended.
///
/// INV-0101: [`Active`](Self::Active) leads to one of the two others, and nothing leads out of those.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeaseState {
    /// Somebody holds it. Whether its time is up is a question about time, not about this state.
    Active,
    /// Its holder gave it back, or the registrar took it away.
    Released,
    /// Its time ran out.
    Expired,
}

impl LeaseState {
    /// INV-0102: whether it is over for good. Every later operation on such a lease fails.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Released | Self::Expired)
    }

    /// CTR-0102: the one spelling that is written anywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "ACTIVE",
            Self::Released => "RELEASED",
            Self::Expired => "EXPIRED",
        }
    }

    /// CTR-0101: reads a state in any mixture of upper and lower case.
    ///
    /// ```
    /// use tenure_core::lease::{LeaseError, LeaseState};
    /// assert_eq!(LeaseState::parse("released"), Ok(LeaseState::Released));
    /// assert!(matches!(LeaseState::parse("gone"), Err(LeaseError::InvalidLeaseState { value }) if value == "gone"));
    /// ```
    pub fn parse(value: &str) -> Result<Self, LeaseError> {
        [Self::Active, Self::Released, Self::Expired]
            .into_iter()
            .find(|state| state.as_str().eq_ignore_ascii_case(value))
            .ok_or_else(|| LeaseError::InvalidLeaseState { value: value.to_owned() })
    }
}

impl fmt::Display for LeaseState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// Why a lease was given back. CTR-0202: kept for audit; nothing is decided by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReleaseReason {
    /// The work is done.
    Completed,
    /// The work was broken off, by its holder or because the registrar took the lease away.
    Aborted,
    /// The holder gave it up of its own accord.
    Voluntary,
}

impl ReleaseReason {
    /// The one spelling that is written anywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "COMPLETED",
            Self::Aborted => "ABORTED",
            Self::Voluntary => "VOLUNTARY",
        }
    }

    /// CTR-0201: reads a reason in any mixture of upper and lower case.
    pub fn parse(value: &str) -> Result<Self, LeaseError> {
        [Self::Completed, Self::Aborted, Self::Voluntary]
            .into_iter()
            .find(|reason| reason.as_str().eq_ignore_ascii_case(value))
            .ok_or_else(|| LeaseError::InvalidReleaseReason { value: value.to_owned() })
    }
}

impl fmt::Display for ReleaseReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// A reading of a monotonic clock, with the rate at which that clock counts.
///
/// Two readings can only be compared when their rates are the same: 5 is earlier than 6 on one clock
/// and says nothing about another. Whoever compares treats another rate like no reading at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HtfTick {
    value: u64,
    tick_rate_hz: u64,
}

impl HtfTick {
    /// The reading `value` of a clock that counts `tick_rate_hz` times a second.
    pub const fn new(value: u64, tick_rate_hz: u64) -> Self {
        Self { value, tick_rate_hz }
    }

    /// How often the clock has counted.
    pub const fn value(self) -> u64 {
        self.value
    }

    /// How often it counts in a second.
    pub const fn tick_rate_hz(self) -> u64 {
        self.tick_rate_hz
    }

    /// Whether this reading and `other` may be compared.
    pub(super) const fn same_clock(self, other: Self) -> bool {
        self.tick_rate_hz == other.tick_rate_hz
    }

    /// How many nanoseconds before `later` this reading was taken, on the same clock.
    ///
    /// Nothing when `later` is in fact earlier, or the clock stands still. Longer than 2^64
    /// nanoseconds counts as 2^64 - 1: whoever asks caps it with an expiry.
    pub(super) fn nanoseconds_until(self, later: u64) -> Option<u64> {
        let ticks = u128::from(later.checked_sub(self.value)?);
        // Below 2^64 * 2^30, so the product fits.
        let nanoseconds = (ticks * 1_000_000_000).checked_div(u128::from(self.tick_rate_hz))?;
        Some(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 1_000_000;

    fn lease(state: LeaseState) -> Lease {
        Lease {
            lease_id: "lease-1".into(),
            work_id: "work-1".into(),
            actor_id: "alice".into(),
            state,
            issued_at: 1_000_000,
            expires_at: 1_100_000,
            issued_at_tick: Some(HtfTick::new(100, RATE)),
            expires_at_tick: Some(HtfTick::new(200, RATE)),
            registrar_signature: vec![7; 64],
            renewal_count: 0,
            last_renewed_at: None,
            release_reason: None,
            terminated_at: None,
        }
    }

    // S2-30, S2-39
    #[test]
    fn lease_is_expired_at_its_expiry_tick() {
        let lease = lease(LeaseState::Active);
        assert!(!lease.is_expired_at_tick(&HtfTick::new(199, RATE)));
        assert!(lease.is_expired_at_tick(&HtfTick::new(200, RATE)));
        assert!(lease.is_expired_at_tick(&HtfTick::new(201, RATE)));
    }

    // S2-39
    #[test]
    fn ended_lease_does_not_expire_again() {
        for state in [LeaseState::Released, LeaseState::Expired] {
            assert!(!lease(state).is_expired_at_tick(&HtfTick::new(500, RATE)));
        }
    }

    // S2-33, S2-39, S2-40
    #[test]
    fn lease_without_ticks_counts_as_expired() {
        for state in [LeaseState::Active, LeaseState::Released, LeaseState::Expired] {
            let mut lease = lease(state);
            lease.issued_at_tick = None;
            lease.expires_at_tick = None;
            assert!(lease.is_expired_at_tick(&HtfTick::new(0, RATE)));
            assert_eq!(lease.ticks_remaining(&HtfTick::new(0, RATE)), 0);
        }
    }

    // O-15, S2-33
    #[test]
    fn tick_of_another_clock_counts_as_expired() {
        let lease = lease(LeaseState::Active);
        let foreign = HtfTick::new(150, RATE + 1);
        assert!(lease.is_expired_at_tick(&foreign));
        assert_eq!(lease.ticks_remaining(&foreign), 0);
    }

    // S2-40
    #[test]
    fn ticks_remaining_saturates_at_zero() {
        let lease = lease(LeaseState::Active);
        let remaining = |tick| lease.ticks_remaining(&HtfTick::new(tick, RATE));
        assert_eq!([remaining(0), remaining(199), remaining(200), remaining(u64::MAX)], [200, 1, 0, 0]);
    }

    // S2-31, S2-32, S2-38: the wall columns may say anything
    #[test]
    fn wall_clock_does_not_affect_tick_expiry() {
        let mut lease = lease(LeaseState::Active);
        for expires_at in [0, 1, u64::MAX] {
            lease.expires_at = expires_at;
            assert!(!lease.is_expired_at_tick(&HtfTick::new(199, RATE)));
            assert_eq!(lease.ticks_remaining(&HtfTick::new(199, RATE)), 1);
        }
    }

    // S2-42, S2-43
    #[test]
    #[expect(deprecated, reason = "they stay until the last lease without ticks is gone")]
    fn deprecated_wall_clock_methods_use_the_same_boundaries() {
        let lease = lease(LeaseState::Active);
        assert!(!lease.is_expired_at(1_099_999));
        assert!(lease.is_expired_at(1_100_000));
        assert_eq!(lease.time_remaining(1_099_999), 1);
        assert_eq!(lease.time_remaining(u64::MAX), 0);
        let ended = super::tests::lease(LeaseState::Released);
        assert!(!ended.is_expired_at(u64::MAX));
    }

    // S2-41
    #[test]
    fn summary_contains_everything_but_the_signature() {
        let lease = lease(LeaseState::Active);
        let summary = lease.summary();
        assert_eq!(
            (summary.lease_id.as_str(), summary.work_id.as_str(), summary.actor_id.as_str()),
            ("lease-1", "work-1", "alice")
        );
        assert_eq!((summary.issued_at, summary.expires_at), (1_000_000, 1_100_000));
        assert_eq!((summary.state, summary.expires_at_tick), (LeaseState::Active, lease.expires_at_tick));
        assert_eq!(
            (summary.renewal_count, summary.release_reason, summary.terminated_at),
            (lease.renewal_count, lease.release_reason, lease.terminated_at)
        );
        assert!(!format!("{summary:?}").contains("7, 7"), "the signature shows");
    }

    // S2-102: the day of pruning is not the event's to choose
    #[test]
    fn wall_time_of_never_exceeds_the_expiry() {
        let lease = lease(LeaseState::Active);
        assert_eq!(lease.wall_time_of(100), 1_000_000);
        assert_eq!(lease.wall_time_of(150), 1_050_000);
        assert_eq!(lease.wall_time_of(200), 1_100_000);
        assert_eq!(lease.wall_time_of(u64::MAX), 1_100_000);
        assert_eq!(lease.wall_time_of(99), 1_100_000, "before its issue: says nothing");
        assert_eq!(lease.wall_time_of(0), 1_100_000);
    }

    // S2-8, S2-9, S2-10: one state goes on, two are the end
    #[test]
    fn only_active_is_not_terminal() {
        assert!(!LeaseState::Active.is_terminal());
        assert!(LeaseState::Released.is_terminal());
        assert!(LeaseState::Expired.is_terminal());
    }

    // S2-11, S2-12
    #[test]
    fn lease_state_parses_any_case_and_prints_upper_case() {
        for (canonical, state) in [
            ("ACTIVE", LeaseState::Active),
            ("RELEASED", LeaseState::Released),
            ("EXPIRED", LeaseState::Expired),
        ] {
            assert_eq!(state.as_str(), canonical);
            assert_eq!(state.to_string(), canonical);
            let mixed = format!("{}{}", &canonical[..1], canonical[1..].to_lowercase());
            for spelling in [canonical.to_owned(), canonical.to_lowercase(), mixed] {
                assert_eq!(LeaseState::parse(&spelling), Ok(state), "{spelling}");
            }
        }
    }

    // S2-11, S2-64
    #[test]
    fn unknown_lease_state_is_named_in_the_error() {
        for value in ["", "ACTIVE ", "GONE", "ACTIVE\0", "ＡＣＴＩＶＥ"] {
            assert_eq!(
                LeaseState::parse(value),
                Err(LeaseError::InvalidLeaseState { value: value.to_owned() }),
                "{value:?}"
            );
        }
    }

    // S2-13, S2-14
    #[test]
    fn release_reason_parses_any_case_and_prints_upper_case() {
        for (canonical, reason) in [
            ("COMPLETED", ReleaseReason::Completed),
            ("ABORTED", ReleaseReason::Aborted),
            ("VOLUNTARY", ReleaseReason::Voluntary),
        ] {
            assert_eq!(reason.as_str(), canonical);
            assert_eq!(reason.to_string(), canonical);
            assert_eq!(ReleaseReason::parse(canonical), Ok(reason));
            assert_eq!(ReleaseReason::parse(&canonical.to_lowercase()), Ok(reason));
            let mixed = format!("{}{}", canonical[..3].to_lowercase(), &canonical[3..]);
            assert_eq!(ReleaseReason::parse(&mixed), Ok(reason));
        }
    }

    // S2-14, S2-63
    #[test]
    fn unknown_release_reason_is_named_in_the_error() {
        for value in ["", " COMPLETED", "DONE", "EXPIRED"] {
            assert_eq!(
                ReleaseReason::parse(value),
                Err(LeaseError::InvalidReleaseReason { value: value.to_owned() }),
                "{value:?}"
            );
        }
    }

    #[test]
    fn ticks_become_nanoseconds_whatever_the_rate() {
        assert_eq!(HtfTick::new(10, 1_000_000).nanoseconds_until(13), Some(3_000));
        assert_eq!(HtfTick::new(10, 1).nanoseconds_until(10), Some(0));
        assert_eq!(HtfTick::new(0, 3).nanoseconds_until(1), Some(333_333_333));
        assert_eq!(HtfTick::new(0, u64::MAX).nanoseconds_until(u64::MAX), Some(1_000_000_000));
    }

    #[test]
    fn tick_conversion_handles_extreme_values() {
        assert_eq!(HtfTick::new(11, 1_000_000).nanoseconds_until(10), None);
        assert_eq!(HtfTick::new(0, 0).nanoseconds_until(10), None);
        assert_eq!(HtfTick::new(0, 1).nanoseconds_until(u64::MAX), Some(u64::MAX));
    }
}
