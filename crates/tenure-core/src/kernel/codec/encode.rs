//! From an event to what is stored.

use prost::Message;

use super::wire::Fields;
use super::work_id;
use crate::kernel::event::{Cause, ClockReading, Event, Issued, Queued, WaitEnd};
use crate::kernel::mode::Mode;
use crate::kernel::name::Labels;
use crate::kernel::state::Anchor;
use crate::kernel::value::{Fence, LedgerTag, RequestKey, TICK_RATE_HZ};
use crate::kernel::want::Want;
use crate::lease::REGISTRAR;
use crate::ledger::EventRecord;
use crate::rules::names::stored_id;
use crate::stored;

/// What an event needs to be stored that is not its own.
#[derive(Debug, Clone, Copy)]
pub struct Stamp<'a> {
    /// Which ledger.
    pub tag: LedgerTag,
    /// How ticks map to wall time.
    pub anchor: Anchor,
    /// What the registrar's signature, or the way to find it, is for this event.
    pub signature: &'a [u8],
}

/// The record of `event`.
pub fn encode(event: &Event, stamp: Stamp<'_>) -> EventRecord {
    let id = |fence: &Fence| stamp.tag.lease_id(*fence);
    match event {
        Event::Issued(issued) => direct("lease.issued", issued_fields(issued, stamp).within(1)),
        Event::Renewed { lease: fence, at, expires_at, ttl } => {
            let renewed = Fields::inner(96)
                .text(1, &stamp.tag.lease_id_text(*fence))
                .number(2, stamp.anchor.wall_of(*expires_at))
                .bytes(3, stamp.signature)
                .number(5, expires_at.0)
                .number(6, TICK_RATE_HZ)
                .number(100, at.0)
                .number(101, ttl.0);
            direct("lease.renewed", renewed.within(2))
        }
        Event::Released { lease: fence, at, by, reason } => {
            let released = stored::LeaseReleased {
                lease_id: id(fence),
                release_reason: reason.as_str().into(),
                time_envelope_ref: Vec::new(),
                tick: at.0,
            };
            lease("lease.released", by.as_str(), stored::lease_event::Event::Released(released))
        }
        Event::Expired { lease: fence, at } => {
            let expired = Fields::inner(48)
                .text(1, &stamp.tag.lease_id_text(*fence))
                .number(2, stamp.anchor.wall_of(*at))
                .number(100, at.0)
                .number(101, TICK_RATE_HZ);
            direct("lease.expired", expired.within(4))
        }
        Event::Revoked { lease: fence, at, cause, by, detail } => {
            let revoked = stored::LeaseRevoked {
                lease_id: id(fence),
                cause: cause_code(*cause).into(),
                tick: at.0,
                by: by.as_str().into(),
                detail: detail.as_ref().into(),
            };
            lease("lease.revoked", REGISTRAR, stored::lease_event::Event::Revoked(revoked))
        }
        Event::Queued(queued) => {
            wait("wait.queued", stored::wait_event::Event::Queued(queued_message(queued)))
        }
        Event::Left { ticket, at, end } => {
            let left = stored::WaitLeft { ticket: ticket.0, end: wait_end_code(*end).into(), tick: at.0 };
            wait("wait.left", stored::wait_event::Event::Left(left))
        }
        Event::Marked { at, reading } => {
            let mark = stored::ClockMark { tick: at.0, reading: Some(reading_message(reading)) };
            clock("clock.mark", stored::clock_event::Event::Mark(mark))
        }
        Event::Resumed { at, reading, wall_anchor, wall_clock } => {
            let resumed = stored::ClockResumed {
                tick: at.0,
                reading: Some(reading_message(reading)),
                wall_anchor: *wall_anchor,
                wall_clock: *wall_clock,
            };
            clock("clock.resumed", stored::clock_event::Event::Resumed(resumed))
        }
        Event::Restored { at, epoch, fence, hold_until } => {
            let restored = stored::WriterRestored {
                epoch: *epoch,
                fence: fence.0,
                tick: at.0,
                hold_until_tick: hold_until.0,
            };
            let event = Some(stored::writer_event::Event::Restored(restored));
            record("writer.restored", REGISTRAR, &stored::WriterEvent { event })
        }
    }
}

/// The fields of a `LeaseIssued`.
fn issued_fields(issued: &Issued, stamp: Stamp<'_>) -> Fields {
    let lease_id = stamp.tag.lease_id_text(issued.fence);
    let (resource, holder) = (issued.resource.as_str(), issued.holder.as_str());
    let work_id = work_id(&issued.resource, issued.mode, &lease_id);
    let actor_id = stored_id(holder);
    // A name stands beside its id only where the id is not the name already.
    let beside = |name, id: &str| if name == id { "" } else { name };
    let mut fields = Fields::inner(192 + resource.len() + holder.len())
        .text(1, &lease_id)
        .text(2, &work_id)
        .text(3, &actor_id)
        .number(4, stamp.anchor.wall_of(issued.at))
        .number(5, stamp.anchor.wall_of(issued.expires_at))
        .bytes(6, stamp.signature)
        .number(8, issued.at.0)
        .number(9, issued.expires_at.0)
        .number(10, TICK_RATE_HZ)
        .number(100, issued.fence.0)
        .number(101, mode_number(issued.mode))
        .text(102, beside(resource, &work_id))
        .text(103, beside(holder, &actor_id))
        .text(104, issued.principal.as_str())
        .number(105, issued.ttl.0)
        .bytes(106, &issued.nonce.0);
    for (name, value) in issued.labels.iter() {
        fields = fields.message(107, &Fields::default().text(1, name).text(2, value));
    }
    if let Some(key) = issued.key {
        fields = fields.message(108, &Fields::default().bytes(1, &key.key.0).bytes(2, &key.body.0));
    }
    fields
        .number(109, issued.ticket.map_or(0, |ticket| ticket.0))
        .number(110, issued.continues.map_or(0, |fence| fence.0))
}

fn queued_message(queued: &Queued) -> stored::WaitQueued {
    let want = |want: &Want| stored::Want {
        resource: want.resource.as_str().into(),
        mode: mode_code(want.mode).into(),
        ttl_ticks: want.ttl.0,
        nonce: want.nonce.0.to_vec(),
        labels: label_messages(&want.labels),
        others: want.others.iter().map(|resource| resource.as_str().into()).collect(),
    };
    stored::WaitQueued {
        ticket: queued.ticket.0,
        holder: queued.holder.as_str().into(),
        principal: queued.principal.as_str().into(),
        wants: queued.wants.iter().map(want).collect(),
        tick: queued.at.0,
        until_tick: queued.until.0,
        idempotency: queued.key.map(key_message),
    }
}

/// A record by the registrar whose payload is there already.
fn direct(event_type: &str, payload: Vec<u8>) -> EventRecord {
    EventRecord::new(event_type, "", REGISTRAR, payload)
}

fn lease(event_type: &str, actor: &str, event: stored::lease_event::Event) -> EventRecord {
    record(event_type, actor, &stored::LeaseEvent { event: Some(event) })
}

fn wait(event_type: &str, event: stored::wait_event::Event) -> EventRecord {
    record(event_type, REGISTRAR, &stored::WaitEvent { event: Some(event) })
}

fn clock(event_type: &str, event: stored::clock_event::Event) -> EventRecord {
    record(event_type, REGISTRAR, &stored::ClockEvent { event: Some(event) })
}

fn record(event_type: &str, actor: &str, message: &impl Message) -> EventRecord {
    EventRecord::new(event_type, "", actor, message.encode_to_vec())
}

fn reading_message(reading: &ClockReading) -> stored::ClockReading {
    stored::ClockReading { clock: reading.clock.as_ref().into(), microseconds: reading.microseconds }
}

fn key_message(key: RequestKey) -> stored::Idempotency {
    stored::Idempotency { key: key.key.0.to_vec(), body: key.body.0.to_vec() }
}

fn label_messages(labels: &Labels) -> Vec<stored::Label> {
    labels.iter().map(|(name, value)| stored::Label { name: name.into(), value: value.into() }).collect()
}

fn mode_number(mode: Mode) -> u64 {
    u64::try_from(i32::from(mode_code(mode))).expect("no mode has a negative number")
}

pub(super) fn mode_code(mode: Mode) -> stored::Mode {
    match mode {
        Mode::Exclusive => stored::Mode::Exclusive,
        Mode::Shared => stored::Mode::Shared,
        Mode::Provides => stored::Mode::Provides,
        Mode::Consumes => stored::Mode::Consumes,
        Mode::DependsOn => stored::Mode::DependsOn,
        Mode::Mutates => stored::Mode::Mutates,
        Mode::Deletes => stored::Mode::Deletes,
        Mode::Renames => stored::Mode::Renames,
    }
}

fn cause_code(cause: Cause) -> stored::RevocationCause {
    match cause {
        Cause::Revoked => stored::RevocationCause::Revoked,
        Cause::Reclaimed => stored::RevocationCause::Reclaimed,
        Cause::Wiped => stored::RevocationCause::Wiped,
        Cause::Disconnected => stored::RevocationCause::Disconnected,
        Cause::Transferred => stored::RevocationCause::Transferred,
        Cause::Died => stored::RevocationCause::Died,
    }
}

fn wait_end_code(end: WaitEnd) -> stored::WaitEnd {
    match end {
        WaitEnd::TimedOut => stored::WaitEnd::TimedOut,
        WaitEnd::Withdrawn => stored::WaitEnd::Withdrawn,
        WaitEnd::Gone => stored::WaitEnd::Gone,
    }
}
