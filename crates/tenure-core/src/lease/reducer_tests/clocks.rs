//! Ticks decide; wall time only where there are none.

use super::*;
use crate::lease::LeaseState;

fn without_ticks(mut renewed: LeaseRenewed) -> LeaseRenewed {
    (renewed.tick, renewed.new_expires_at_tick, renewed.tick_rate_hz) = (0, 0, 0);
    renewed
}

// S2-33: a rate of 0 says that there are no ticks, whatever else stands there
#[test]
fn lease_without_a_tick_rate_has_no_ticks() {
    for (from, until) in [(0, 0), (100, 200), (200, 100)] {
        let mut watched = CheckedReducer::default();
        watched.apply_as_registrar(issued_with_ticks(from, until, 0)).unwrap();
        assert_eq!((watched.lease().issued_at_tick, watched.lease().expires_at_tick), (None, None));
        assert!(watched.lease().is_expired_at_tick(&HtfTick::new(0, RATE)));
        assert!(watched.lease().is_expired_at_tick(&HtfTick::new(0, 0)));
    }
}

// O-15
#[test]
fn lease_without_tick_duration_is_rejected() {
    for (issued_at_tick, expires_at_tick) in [(100, 100), (100, 99), (0, 0), (u64::MAX, 0)] {
        let refused = CheckedReducer::default().apply_as_registrar(issued_with_ticks(
            issued_at_tick,
            expires_at_tick,
            RATE,
        ));
        let lease_id = "lease-1".to_owned();
        assert_eq!(refused, Err(LeaseError::InvalidTickTiming { lease_id, issued_at_tick, expires_at_tick }));
    }
    assert_eq!(CheckedReducer::default().apply_as_registrar(issued_with_ticks(0, 1, RATE)), Ok(()));
    assert_eq!(
        CheckedReducer::default().apply_as_registrar(issued_with_ticks(0, u64::MAX, u64::MAX)),
        Ok(())
    );
}

// S2-35: also where ticks decide
#[test]
fn lease_without_wall_duration_is_rejected_despite_valid_ticks() {
    let Event::Issued(mut issued) = issued_with_ticks(100, 200, RATE) else { unreachable!() };
    issued.expires_at = issued.issued_at;
    assert_eq!(field_of(CheckedReducer::default().apply_as_registrar(Event::Issued(issued))), "expires_at");
}

// S2-30, S2-62: at the expiry it is dead, also when nobody has recorded it yet
#[test]
fn renew_at_or_after_the_expiry_tick_is_rejected() {
    assert_eq!(
        CheckedReducer::with_ticks().apply_as_registrar(Event::Renewed(renewed_at_tick(199, 300))),
        Ok(())
    );
    for late in [200, 201, u64::MAX] {
        let mut watched = CheckedReducer::with_ticks();
        assert_eq!(
            watched.apply_as_registrar(Event::Renewed(renewed_at_tick(late, u64::MAX))),
            Err(LeaseError::LeaseExpired { lease_id: "lease-1".into(), expired_at: 200 })
        );
        watched.apply_as_registrar(expired_at_tick(late, RATE)).unwrap();
    }
}

// S2-30, S2-32, S2-67
#[test]
fn renewal_extension_is_judged_by_ticks() {
    let renewed = |until_tick, until_wall| {
        let event = LeaseRenewed { new_expires_at: until_wall, ..renewed_at_tick(150, until_tick) };
        let mut watched = CheckedReducer::with_ticks();
        watched.apply_as_registrar(Event::Renewed(event)).map(|()| watched.lease().clone())
    };
    for until_tick in [0, 199, 200] {
        let refused = LeaseError::RenewalDoesNotExtend {
            lease_id: "lease-1".into(),
            current_expires_at: 200,
            new_expires_at: until_tick,
        };
        assert_eq!(renewed(until_tick, u64::MAX), Err(refused), "a wall clock that runs ahead gives nothing");
    }
    let lease = renewed(201, 1_050_000).unwrap();
    assert_eq!(lease.expires_at_tick, Some(HtfTick::new(201, RATE)), "a wall clock set back takes nothing");
    assert_eq!(lease.expires_at, 1_050_000);
    assert_eq!(lease.issued_at_tick, Some(HtfTick::new(100, RATE)));
}

// S2-35: what a renewal says about wall time must still be a time after the issue
#[test]
fn renewal_to_before_the_issue_time_is_rejected() {
    for new_expires_at in [0, 999_999, 1_000_000] {
        let event = LeaseRenewed { new_expires_at, ..renewed_at_tick(150, 300) };
        assert_eq!(
            field_of(CheckedReducer::with_ticks().apply_as_registrar(Event::Renewed(event))),
            "new_expires_at"
        );
    }
}

// S2-33, S2-94, O-15: a lease keeps the clock that it was issued with
#[test]
fn renewal_with_another_tick_rate_is_rejected() {
    let faster = LeaseRenewed { tick_rate_hz: RATE + 1, ..renewed_at_tick(150, 300) };
    assert_eq!(
        field_of(CheckedReducer::with_ticks().apply_as_registrar(Event::Renewed(faster))),
        "tick_rate_hz"
    );
    let wall_only = without_ticks(renewed_at_tick(150, 300));
    assert_eq!(
        field_of(CheckedReducer::with_ticks().apply_as_registrar(Event::Renewed(wall_only))),
        "tick_rate_hz"
    );
    let ticks = LeaseRenewed { new_expires_at: 3_000, ..renewed_at_tick(150, 300) };
    assert_eq!(
        field_of(CheckedReducer::with_lease().apply_as_registrar(Event::Renewed(ticks))),
        "tick_rate_hz"
    );
}

// S2-26
#[test]
fn renewal_time_is_computed_from_its_tick() {
    let mut watched = CheckedReducer::with_ticks();
    watched.apply_as_registrar(Event::Renewed(renewed_at_tick(150, 300))).unwrap();
    assert_eq!(watched.lease().last_renewed_at, Some(1_050_000));
    watched.apply_as_registrar(Event::Renewed(renewed_at_tick(250, 400))).unwrap();
    assert_eq!(watched.lease().last_renewed_at, Some(1_150_000));
    // An event that does not say: the latest at which it can have been in time.
    watched.apply_as_registrar(Event::Renewed(renewed_at_tick(0, 500))).unwrap();
    assert_eq!(watched.lease().last_renewed_at, Some(1_200_000));
}

// S2-32, S2-38, S2-71, S2-100
#[test]
fn wall_clock_cannot_expire_a_lease_with_ticks() {
    let mut watched = CheckedReducer::with_ticks();
    for tick in [0, 1, 199] {
        assert_eq!(watched.apply_as_registrar(expired_at_tick(tick, RATE)), too_early(tick, 200));
    }
    assert_eq!(watched.expire("lease-1", u64::MAX), too_early(0, 200), "no tick at all");
    assert_eq!(
        watched.apply_as_registrar(expired_at_tick(500, RATE * 1_000)),
        too_early(0, 200),
        "another clock's"
    );
    assert_eq!(watched.lease().state, LeaseState::Active);
}

// S2-32, S2-37: with the wall clock set back to the beginning of time
#[test]
fn wall_clock_cannot_keep_a_lease_with_ticks_active() {
    for tick in [200, 201, u64::MAX] {
        let mut watched = CheckedReducer::with_ticks();
        let expired = LeaseExpired { lease_id: "lease-1".into(), expired_at: 0, tick, tick_rate_hz: RATE };
        watched.apply_as_registrar(Event::Expired(expired)).unwrap();
        assert_eq!(watched.lease().state, LeaseState::Expired);
        assert_eq!(watched.lease().terminated_at, Some(1_100_000));
    }
}

// S2-31: an old lease, and a registrar that has ticks by now
#[test]
fn lease_without_ticks_expires_by_wall_time() {
    let expired = |expired_at, tick| {
        Event::Expired(LeaseExpired { lease_id: "lease-1".into(), expired_at, tick, tick_rate_hz: RATE })
    };
    let mut watched = CheckedReducer::with_lease();
    assert_eq!(watched.apply_as_registrar(expired(1_999, u64::MAX)), too_early(1_999, 2_000));
    watched.apply_as_registrar(expired(2_000, 0)).unwrap();
    assert_eq!(watched.lease().terminated_at, Some(2_000));
}
