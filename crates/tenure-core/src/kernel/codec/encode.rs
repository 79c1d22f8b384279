//! From an event to what is stored.

use super::fields::MessageCodec;
use super::stored_work_id;
use crate::kernel::event::{Event, IssuedLease};
use crate::kernel::state::ClockAnchor;
use crate::lease::REGISTRAR;
use crate::ledger::EventRecord;
use crate::proto;
use crate::protobuf_writer::ProtobufWriter;
use crate::rules::stored_id;
use crate::value::{Fence, LedgerTag, TICK_RATE_HZ};

/// What an event needs to be stored that is not its own.
#[derive(Debug, Clone, Copy)]
pub struct EncodeContext<'a> {
    pub tag: LedgerTag,
    pub anchor: ClockAnchor,
    /// What the registrar's signature, or the way to find it, is for this event.
    pub signature: &'a [u8],
}

pub fn encode(event: &Event, stamp: EncodeContext<'_>) -> EventRecord {
    let mut payload = Vec::new();
    encode_payload(event, stamp, &mut ProtobufWriter::append_to(&mut payload));
    EventRecord::new(event.type_name(), "", actor_of(event), payload)
}

/// The record of `event` as it is stored, without making it first: adds the fields of a `Record` to `record`.
pub fn encode_to(event: &Event, stamp: EncodeContext<'_>, record: &mut ProtobufWriter<'_>) {
    record.text(1, event.type_name()).text(3, actor_of(event));
    record.message(4, |payload| encode_payload(event, stamp, payload));
}

fn actor_of(event: &Event) -> &str {
    match event {
        Event::Released { by, .. } => by.as_str(),
        _ => REGISTRAR,
    }
}

/// What there are many of is written field by field, the rest as a message that is made first.
fn encode_payload(event: &Event, stamp: EncodeContext<'_>, payload: &mut ProtobufWriter<'_>) {
    let id = |fence: &Fence| stamp.tag.lease_id(*fence);
    match event {
        Event::Issued(issued) => {
            payload.message(1, |fields| encode_issued(issued, stamp, fields));
        }
        Event::Renewed { lease: fence, at, expires_at, ttl } => {
            payload.message(2, |fields| {
                fields
                    .bytes(1, stamp.tag.lease_id_text(*fence).as_bytes())
                    .number(2, stamp.anchor.wall_time_of(*expires_at))
                    .bytes(3, stamp.signature)
                    .number(5, expires_at.0)
                    .number(6, TICK_RATE_HZ)
                    .number(100, at.0)
                    .number(101, ttl.0);
            });
        }
        Event::Released { lease: fence, at, reason, .. } => {
            let released = proto::LeaseReleased {
                lease_id: id(fence),
                release_reason: reason.as_str().into(),
                time_envelope_ref: Vec::new(),
                tick: at.0,
            };
            payload.append_message(&lease(proto::lease_event::Event::Released(released)));
        }
        Event::Expired { lease: fence, at } => {
            payload.message(4, |fields| {
                fields
                    .bytes(1, stamp.tag.lease_id_text(*fence).as_bytes())
                    .number(2, stamp.anchor.wall_time_of(*at))
                    .number(100, at.0)
                    .number(101, TICK_RATE_HZ);
            });
        }
        Event::Revoked { lease: fence, at, cause, by, detail } => {
            let revoked = proto::LeaseRevoked {
                lease_id: id(fence),
                cause: cause.to_message(),
                tick: at.0,
                by: by.as_str().into(),
                detail: detail.as_ref().into(),
            };
            payload.append_message(&lease(proto::lease_event::Event::Revoked(revoked)));
        }
        Event::Queued(queued) => {
            payload.append_message(&wait(proto::wait_event::Event::Queued(queued.to_message())));
        }
        Event::Left { ticket, at, end } => {
            let ended = proto::WaitLeft { ticket: ticket.0, end: end.to_message(), tick: at.0 };
            payload.append_message(&wait(proto::wait_event::Event::Left(ended)));
        }
        Event::File(event) => payload.append_message(&event.to_message()),
        Event::Intent(event) => payload.append_message(&event.to_message()),
        Event::Agent(event) => payload.append_message(&event.to_message()),
        Event::Work(event) => {
            payload.append_message(&crate::kernel::work::codec::to_message(event, stamp.tag))
        }
        Event::Marked { at, reading } => {
            let mark = proto::ClockMark { tick: at.0, reading: reading.to_message() };
            payload.append_message(&clock(proto::clock_event::Event::Mark(mark)));
        }
        Event::Resumed { at, reading, wall_anchor, wall_clock } => {
            let resumed = proto::ClockResumed {
                tick: at.0,
                reading: reading.to_message(),
                wall_anchor: *wall_anchor,
                wall_clock: *wall_clock,
            };
            payload.append_message(&clock(proto::clock_event::Event::Resumed(resumed)));
        }
        Event::Restored { at, epoch, fence, hold_until } => {
            let restored = proto::WriterRestored {
                epoch: *epoch,
                fence: fence.0,
                tick: at.0,
                hold_until_tick: hold_until.0,
            };
            let event = Some(proto::writer_event::Event::Restored(restored));
            payload.append_message(&proto::WriterEvent { event });
        }
    }
}

fn encode_issued(issued: &IssuedLease, stamp: EncodeContext<'_>, fields: &mut ProtobufWriter<'_>) {
    let terms = &issued.terms;
    let lease_id = stamp.tag.lease_id_text(issued.fence);
    let (resource, holder) = (issued.resource.as_str(), issued.holder.as_str());
    let work_id = stored_work_id(&issued.resource, terms.mode, &lease_id);
    let actor_id = stored_id(holder);
    // A name stands beside its id only where the id is not the name already.
    let beside = |name, id: &str| if name == id { "" } else { name };
    fields
        .bytes(1, lease_id.as_bytes())
        .text(2, &work_id)
        .text(3, &actor_id)
        .number(4, stamp.anchor.wall_time_of(terms.issued_at))
        .number(5, stamp.anchor.wall_time_of(terms.expires_at))
        .bytes(6, stamp.signature)
        .number(8, terms.issued_at.0)
        .number(9, terms.expires_at.0)
        .number(10, TICK_RATE_HZ)
        .number(100, issued.fence.0)
        .number(101, u64::from(terms.mode as u8) + 1)
        .text(102, beside(resource, &work_id))
        .text(103, beside(holder, &actor_id))
        .text(104, issued.principal.as_str())
        .number(105, terms.ttl.0)
        .bytes(106, &terms.nonce.0);
    for (name, value) in terms.labels.iter() {
        fields.message(107, |label| {
            label.text(1, name).text(2, value);
        });
    }
    if let Some(key) = issued.key {
        fields.message(108, |fields| {
            fields.bytes(1, &key.key.0).bytes(2, &key.body.0);
        });
    }
    fields
        .number(109, issued.ticket.map_or(0, |ticket| ticket.0))
        .number(110, issued.continues.map_or(0, |fence| fence.0));
    if let Some(authority) = &issued.authority {
        fields.message(111, |fields| {
            fields.append_message(&crate::kernel::work::codec::authority_to_message(authority))
        });
    }
}

fn lease(event: proto::lease_event::Event) -> proto::LeaseEvent {
    proto::LeaseEvent { event: Some(event) }
}

fn wait(event: proto::wait_event::Event) -> proto::WaitEvent {
    proto::WaitEvent { event: Some(event) }
}

fn clock(event: proto::clock_event::Event) -> proto::ClockEvent {
    proto::ClockEvent { event: Some(event) }
}
