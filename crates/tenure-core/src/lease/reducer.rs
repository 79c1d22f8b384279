//! Applies lease events, one after the other, and refuses those that break a rule.

use prost::Message;

use super::{HtfTick, Lease, LeaseError, LeaseReducerState, LeaseState, ReleaseReason};
use crate::ledger::EventRecord;
use crate::proto::lease_event::Event;
use crate::proto::{
    LeaseEvent, LeaseExpired, LeaseIssued, LeaseReleased, LeaseRenewed, LeaseRevoked, RevocationCause,
};
use crate::reducer::{Reducer, ReducerContext};
use crate::rules::{check_id, check_signature_length, extends, has_duration, is_expired};

/// The actor that issues and signs leases; it alone may revoke one.
pub const REGISTRAR: &str = "registrar";

/// Turns `lease.*` events into a [`LeaseReducerState`].
///
/// All checks come before the first change, so a refused event leaves the state exactly as it was. Each
/// kind of event has its checks in a fixed order, and the first that fails is the one reported.
///
/// **Which clock decides.** A lease keeps the clock that it was issued with. With ticks, "too early" and
/// "does not extend" compare ticks, and wall time decides nothing: a renewal without ticks, or at another
/// rate, is refused as [`LeaseError::InvalidInput`] on `tick_rate_hz`; an expiry without ticks is refused
/// as [`LeaseError::InvalidExpiration`], since a wall clock's word must not end it. Without ticks, wall
/// time is all there is: a renewal that brings ticks is refused like one of another rate, and an expiry is
/// judged by its `expired_at` whether or not it also names a tick.
///
/// **What is not checked here.** That a signature is there is checked, not that it is right; and an id
/// that was pruned could be used again. Both are the business of whoever appends to the ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseReducer {
    state: LeaseReducerState,
}

impl LeaseReducer {
    /// A reducer before the first event.
    pub fn new() -> Self {
        Self::default()
    }

    /// A reducer that goes on from `state`, such as one out of a checkpoint.
    pub fn with_state(state: LeaseReducerState) -> Self {
        Self { state }
    }

    fn issue(&mut self, issued: LeaseIssued) -> Result<(), LeaseError> {
        check_id("lease_id", &issued.lease_id)?;
        check_id("work_id", &issued.work_id)?;
        check_id("actor_id", &issued.actor_id)?;
        check_signature_length("registrar_signature", &issued.registrar_signature)?;
        if self.state.leases.contains_key(&issued.lease_id) {
            return Err(LeaseError::LeaseAlreadyExists { lease_id: issued.lease_id });
        }
        if let Some(existing) = self.state.active_leases_by_work.get(&issued.work_id) {
            let existing_lease_id = existing.clone();
            return Err(LeaseError::WorkAlreadyLeased { work_id: issued.work_id, existing_lease_id });
        }
        check_signed(&issued.lease_id, &issued.registrar_signature)?;
        if !has_duration(issued.issued_at, issued.expires_at) {
            let (from, until) = (issued.issued_at, issued.expires_at);
            let reason = format!("is {until}; it must be later than issued_at, which is {from}");
            return Err(LeaseError::invalid("expires_at", reason));
        }
        let ticks = ticks_of(&issued)?;

        self.state.active_leases_by_work.insert(issued.work_id.clone(), issued.lease_id.clone());
        let lease = Lease {
            lease_id: issued.lease_id.clone(),
            work_id: issued.work_id,
            actor_id: issued.actor_id,
            state: LeaseState::Active,
            issued_at: issued.issued_at,
            expires_at: issued.expires_at,
            issued_at_tick: ticks.map(|(from, _)| from),
            expires_at_tick: ticks.map(|(_, until)| until),
            registrar_signature: issued.registrar_signature,
            renewal_count: 0,
            last_renewed_at: None,
            release_reason: None,
            terminated_at: None,
        };
        self.state.leases.insert(issued.lease_id, lease);
        Ok(())
    }

    fn renew(&mut self, renewed: LeaseRenewed) -> Result<(), LeaseError> {
        check_id("lease_id", &renewed.lease_id)?;
        check_signature_length("registrar_signature", &renewed.registrar_signature)?;
        let lease = self.active(&renewed.lease_id)?;
        let new_end = check_renewal(lease, &renewed)?;
        check_signed(&renewed.lease_id, &renewed.registrar_signature)?;

        // As long as the old end stands, because that is the latest at which it can have been renewed.
        lease.last_renewed_at = Some(lease.wall_time_of(renewed.tick));
        lease.expires_at = renewed.new_expires_at;
        lease.expires_at_tick = new_end;
        lease.registrar_signature = renewed.registrar_signature;
        lease.renewal_count = lease.renewal_count.saturating_add(1);
        Ok(())
    }

    fn release(&mut self, released: &LeaseReleased, actor_id: &str) -> Result<(), LeaseError> {
        check_id("lease_id", &released.lease_id)?;
        let lease = self.active(&released.lease_id)?;
        if actor_id != lease.actor_id {
            return Err(unauthorized(&released.lease_id, actor_id));
        }
        let reason = ReleaseReason::parse(&released.release_reason)?;
        let ended = lease.wall_time_of(released.tick);
        self.end(&released.lease_id, LeaseState::Released, Some(reason), ended)
    }

    fn revoke(&mut self, revoked: &LeaseRevoked, actor_id: &str) -> Result<(), LeaseError> {
        check_id("lease_id", &revoked.lease_id)?;
        let lease = self.active(&revoked.lease_id)?;
        if actor_id != REGISTRAR {
            return Err(unauthorized(&revoked.lease_id, actor_id));
        }
        if matches!(RevocationCause::try_from(revoked.cause), Err(_) | Ok(RevocationCause::Unspecified)) {
            let reason = format!("{} is no cause; say why the lease is taken away", revoked.cause);
            return Err(LeaseError::invalid("cause", reason));
        }
        let ended = lease.wall_time_of(revoked.tick);
        self.end(&revoked.lease_id, LeaseState::Released, Some(ReleaseReason::Aborted), ended)
    }

    fn expire(&mut self, expired: &LeaseExpired) -> Result<(), LeaseError> {
        check_id("lease_id", &expired.lease_id)?;
        let lease = self.active(&expired.lease_id)?;
        check_expiry(lease, expired)?;
        // INV-0304: the lease's own end, not what the event says, which could be put off for ever.
        let ended = lease.expires_at;
        self.end(&expired.lease_id, LeaseState::Expired, None, ended)
    }

    fn active(&mut self, lease_id: &str) -> Result<&mut Lease, LeaseError> {
        let Some(lease) = self.state.leases.get_mut(lease_id) else {
            return Err(LeaseError::LeaseNotFound { lease_id: lease_id.to_owned() });
        };
        if lease.state.is_terminal() {
            let current_state = lease.state.as_str().to_owned();
            return Err(LeaseError::LeaseAlreadyTerminal { lease_id: lease_id.to_owned(), current_state });
        }
        Ok(lease)
    }

    fn end(
        &mut self,
        lease_id: &str,
        state: LeaseState,
        reason: Option<ReleaseReason>,
        ended: u64,
    ) -> Result<(), LeaseError> {
        let lease = self.active(lease_id)?;
        lease.state = state;
        lease.release_reason = reason;
        lease.terminated_at = Some(ended);
        let work_id = lease.work_id.clone();
        self.state.active_leases_by_work.remove(&work_id);
        Ok(())
    }
}

impl Reducer for LeaseReducer {
    type State = LeaseReducerState;
    type Error = LeaseError;

    fn name(&self) -> &'static str {
        "lease-registrar"
    }

    fn apply(&mut self, event: &EventRecord, _ctx: &ReducerContext) -> Result<(), Self::Error> {
        match read(event)? {
            Some(Event::Issued(issued)) => self.issue(issued),
            Some(Event::Renewed(renewed)) => self.renew(renewed),
            Some(Event::Released(released)) => self.release(&released, &event.actor_id),
            Some(Event::Revoked(revoked)) => self.revoke(&revoked, &event.actor_id),
            Some(Event::Expired(expired)) => self.expire(&expired),
            // For audit only; and what is not ours.
            Some(Event::Conflict(_) | Event::IssueDenied(_)) | None => Ok(()),
        }
    }

    fn state(&self) -> &Self::State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut Self::State {
        &mut self.state
    }

    fn reset(&mut self) {
        self.state = LeaseReducerState::new();
    }
}

/// A rate of 0 says that there are no ticks; with a rate, they have to be a time to live.
fn ticks_of(issued: &LeaseIssued) -> Result<Option<(HtfTick, HtfTick)>, LeaseError> {
    if issued.tick_rate_hz == 0 {
        return Ok(None);
    }
    let (issued_at_tick, expires_at_tick) = (issued.issued_at_tick, issued.expires_at_tick);
    if !has_duration(issued_at_tick, expires_at_tick) {
        let lease_id = issued.lease_id.clone();
        return Err(LeaseError::InvalidTickTiming { lease_id, issued_at_tick, expires_at_tick });
    }
    let tick = |value| HtfTick::new(value, issued.tick_rate_hz);
    Ok(Some((tick(issued_at_tick), tick(expires_at_tick))))
}

/// The tick at which a renewed lease is over, once the renewal is found to be in time and to extend it.
fn check_renewal(lease: &Lease, renewed: &LeaseRenewed) -> Result<Option<HtfTick>, LeaseError> {
    let lease_id = || lease.lease_id.clone();
    let does_not_extend = |current_expires_at, new_expires_at| LeaseError::RenewalDoesNotExtend {
        lease_id: lease_id(),
        current_expires_at,
        new_expires_at,
    };
    let rate = lease.expires_at_tick.map_or(0, HtfTick::tick_rate_hz);
    if renewed.tick_rate_hz != rate {
        let reason = format!("is {}; this lease counts at {rate} and keeps its clock", renewed.tick_rate_hz);
        return Err(LeaseError::invalid("tick_rate_hz", reason));
    }
    let Some(end) = lease.expires_at_tick else {
        if !extends(lease.expires_at, renewed.new_expires_at) {
            return Err(does_not_extend(lease.expires_at, renewed.new_expires_at));
        }
        return Ok(None);
    };
    if is_expired(renewed.tick, end.value()) {
        return Err(LeaseError::LeaseExpired { lease_id: lease_id(), expired_at: end.value() });
    }
    if !extends(end.value(), renewed.new_expires_at_tick) {
        return Err(does_not_extend(end.value(), renewed.new_expires_at_tick));
    }
    // Wall time decides nothing here, but INV-0302 holds for as long as the lease does.
    if !has_duration(lease.issued_at, renewed.new_expires_at) {
        let reason = format!("is {}; the lease was issued at {}", renewed.new_expires_at, lease.issued_at);
        return Err(LeaseError::invalid("new_expires_at", reason));
    }
    Ok(Some(HtfTick::new(renewed.new_expires_at_tick, rate)))
}

fn check_expiry(lease: &Lease, expired: &LeaseExpired) -> Result<(), LeaseError> {
    let (provided, lease_expires_at) = match lease.expires_at_tick {
        None => (expired.expired_at, lease.expires_at),
        // Ticks of another clock are no ticks of this lease, and without any it has not been over yet.
        Some(end) if expired.tick_rate_hz != end.tick_rate_hz() => (0, end.value()),
        Some(end) => (expired.tick, end.value()),
    };
    if !is_expired(provided, lease_expires_at) {
        let lease_id = lease.lease_id.clone();
        return Err(LeaseError::InvalidExpiration { lease_id, provided, lease_expires_at });
    }
    Ok(())
}

fn check_signed(lease_id: &str, signature: &[u8]) -> Result<(), LeaseError> {
    if signature.is_empty() {
        return Err(LeaseError::MissingSignature { lease_id: lease_id.to_owned() });
    }
    Ok(())
}

fn unauthorized(lease_id: &str, actor_id: &str) -> LeaseError {
    LeaseError::Unauthorized { lease_id: lease_id.to_owned(), actor_id: actor_id.to_owned() }
}

/// What the types of lease events begin with.
const PREFIX: &str = "lease.";

/// The event in `record`, or nothing when the record is another reducer's.
///
/// Type and payload must agree. A type after `lease.` that is not known here could end a lease that this
/// version goes on believing in, so it is an error, not something to skip.
pub(super) fn read(record: &EventRecord) -> Result<Option<Event>, LeaseError> {
    // INV-0503
    if !record.event_type.starts_with(PREFIX) {
        return Ok(None);
    }
    if !TYPES.contains(&record.event_type.as_str()) {
        let reason = format!("{:?} is no lease event that this version knows", record.event_type);
        return Err(LeaseError::invalid("event_type", reason));
    }
    let Some(event) = LeaseEvent::decode(record.payload.as_slice())?.event else {
        return Err(LeaseError::invalid(
            "payload",
            "holds no lease event; expected one of those in tenure.proto",
        ));
    };
    if type_of(&event) != record.event_type {
        let reason = format!("is {:?}, but the payload is a {:?}", record.event_type, type_of(&event));
        return Err(LeaseError::invalid("event_type", reason));
    }
    Ok(Some(event))
}

const TYPES: [&str; 7] = [
    "lease.issued",
    "lease.renewed",
    "lease.released",
    "lease.expired",
    "lease.conflict",
    "lease.issue_denied",
    "lease.revoked",
];

fn type_of(event: &Event) -> &'static str {
    match event {
        Event::Issued(_) => "lease.issued",
        Event::Renewed(_) => "lease.renewed",
        Event::Released(_) => "lease.released",
        Event::Expired(_) => "lease.expired",
        Event::Conflict(_) => "lease.conflict",
        Event::IssueDenied(_) => "lease.issue_denied",
        Event::Revoked(_) => "lease.revoked",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::helpers;

    fn field_of(error: LeaseError) -> String {
        match error {
            LeaseError::InvalidInput { field, .. } => field,
            other => panic!("{other:?}"),
        }
    }

    // S2-53: whatever is in it, damaged or not
    #[test]
    fn records_of_other_reducers_are_ignored() {
        for event_type in
            ["", "lease", "leases.issued", "LEASE.issued", " lease.issued", "wait.queued", "x.lease.issued"]
        {
            let record = EventRecord::new(event_type, "s", "a", [0xFF; 9]);
            assert_eq!(read(&record), Ok(None), "{event_type:?}");
        }
    }

    // S2-94: whatever its payload is, and it is the type that is blamed
    #[test]
    fn unknown_lease_event_type_is_rejected() {
        let payloads =
            [helpers::lease_expired_payload("l", 1), vec![0xBA, 0x06, 0x00], vec![0xFF; 9], vec![]];
        for event_type in ["lease.", "lease.sublet", "lease.Issued", "lease.issued ", "lease.issued.v2"] {
            for payload in &payloads {
                let error = read(&EventRecord::new(event_type, "s", "a", payload.clone())).unwrap_err();
                assert_eq!(field_of(error), "event_type", "{event_type:?} {payload:?}");
            }
        }
    }

    // S2-94: an auditor who reads types and a reducer that reads payloads must see the same thing
    #[test]
    fn payload_of_another_event_type_is_rejected() {
        let payload = helpers::lease_renewed_payload("l", 1, vec![1]);
        for event_type in TYPES.into_iter().filter(|event_type| *event_type != "lease.renewed") {
            let error = read(&EventRecord::new(event_type, "s", "a", payload.clone())).unwrap_err();
            assert_eq!(field_of(error), "event_type", "{event_type}");
        }
        assert!(matches!(
            read(&EventRecord::new("lease.renewed", "s", "a", payload)),
            Ok(Some(Event::Renewed(_)))
        ));
    }

    // S2-68, S2-94
    #[test]
    fn invalid_payload_is_rejected() {
        let unknown_variant = [0xBA, 0x06, 0x00];
        for payload in [&[] as &[u8], &unknown_variant] {
            let error = read(&EventRecord::new("lease.issued", "s", "a", payload)).unwrap_err();
            assert_eq!(field_of(error), "payload");
        }
        // O-14: audit-only events are decoded too
        for event_type in TYPES {
            let error = read(&EventRecord::new(event_type, "s", "a", [0xFF; 9])).unwrap_err();
            assert!(matches!(error, LeaseError::DecodeError(_)), "{event_type}: {error:?}");
        }
    }
}
