//! From what is stored to an event. Whatever does not fit is refused: a ledger is believed whole or not at all.

use prost::Message;
use thiserror::Error;

use super::fields::MessageCodec;
use super::stored_work_id;
use crate::kernel::event::{Event, IssuedLease, LeaseTerms};
use crate::lease::{LeaseError, ReleaseReason};
use crate::ledger::EventRecord;
use crate::proto::{self, clock_event, lease_event, wait_event, writer_event};
use crate::rules::{InvalidInput, stored_id};
use crate::value::{Fence, Holder, LedgerTag, Principal, Resource, TICK_RATE_HZ, Tick, TickDuration, Ticket};

/// A record that this version cannot read. Stop and call a human: the ledger is damaged, or newer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    #[error("the payload of {event_type} is not a protobuf message of its kind")]
    Protobuf {
        event_type: String,
        #[source]
        source: prost::DecodeError,
    },
    /// The message does not say what its type promises, or says something that cannot be.
    #[error("{event_type} cannot be read: {input}")]
    Malformed { event_type: String, input: InvalidInput },
}

/// The event in `record`; nothing if it is not the kernel's, or is there for audit only.
pub fn decode(record: &EventRecord, tag: LedgerTag) -> Result<Option<Event>, DecodeError> {
    let kind = record.event_type.split('.').next().unwrap_or_default();
    let read = match kind {
        "lease" => decode_lease(record, message::<proto::LeaseEvent>(record)?, tag),
        "wait" => decode_wait(message::<proto::WaitEvent>(record)?).map(Decoded::Event),
        "agent" => boxed(message::<proto::AgentEvent>(record)?).map(Event::Agent).map(Decoded::Event),
        "file" => boxed(message::<proto::FileEvent>(record)?).map(Event::File).map(Decoded::Event),
        "intent" => boxed(message::<proto::IntentEvent>(record)?).map(Event::Intent).map(Decoded::Event),
        "work" => crate::kernel::work::codec::from_message(message::<proto::WorkEvent>(record)?, tag)
            .map(Decoded::Event),
        "clock" => decode_clock(message::<proto::ClockEvent>(record)?).map(Decoded::Event),
        "writer" => decode_writer(&message::<proto::WriterEvent>(record)?).map(Decoded::Event),
        _ => return Ok(None),
    };
    let (expected, event) = match read.map_err(|input| malformed(record, input))? {
        Decoded::Event(event) => (event.type_name(), Some(event)),
        Decoded::Audit(event_type) => (event_type, None),
    };
    if expected != record.event_type {
        return Err(malformed(record, InvalidInput::new("event_type", "is not that of its payload")));
    }
    Ok(event)
}

enum Decoded {
    Event(Event),
    /// It changes nothing. Its type still has to be its own: else it could stand where an event was.
    Audit(&'static str),
}

fn decode_lease(
    record: &EventRecord,
    message: proto::LeaseEvent,
    tag: LedgerTag,
) -> Result<Decoded, InvalidInput> {
    let fence = |id: &str| tag.fence_of(id).ok_or_else(|| invalid("lease_id", "is not one of this ledger"));
    Ok(Decoded::Event(match message.event.ok_or_else(|| invalid("payload", "is empty"))? {
        lease_event::Event::Issued(issued) => Event::Issued(decode_issued(issued, tag)?),
        lease_event::Event::Renewed(renewed) => {
            check_rate(renewed.tick_rate_hz)?;
            Event::Renewed {
                lease: fence(&renewed.lease_id)?,
                at: Tick(renewed.tick),
                expires_at: Tick(renewed.new_expires_at_tick),
                ttl: TickDuration(renewed.ttl_ticks),
            }
        }
        lease_event::Event::Released(released) => Event::Released {
            lease: fence(&released.lease_id)?,
            at: Tick(released.tick),
            by: Holder::parse(&record.actor_id)?,
            reason: ReleaseReason::parse(&released.release_reason)
                .map_err(|_: LeaseError| invalid("release_reason", "is none of the three"))?,
        },
        lease_event::Event::Expired(expired) => {
            check_rate(expired.tick_rate_hz)?;
            Event::Expired { lease: fence(&expired.lease_id)?, at: Tick(expired.tick) }
        }
        lease_event::Event::Revoked(revoked) => Event::Revoked {
            lease: fence(&revoked.lease_id)?,
            at: Tick(revoked.tick),
            cause: MessageCodec::from_message(revoked.cause)?,
            by: Principal::parse(&revoked.by)?,
            detail: revoked.detail.into(),
        },
        lease_event::Event::Conflict(_) => return Ok(Decoded::Audit("lease.conflict")),
        lease_event::Event::IssueDenied(_) => return Ok(Decoded::Audit("lease.issue_denied")),
    }))
}

fn decode_issued(message: proto::LeaseIssued, tag: LedgerTag) -> Result<IssuedLease, InvalidInput> {
    check_rate(message.tick_rate_hz)?;
    let fence = Fence(message.fence);
    if tag.fence_of(&message.lease_id) != Some(fence) {
        return Err(invalid("lease_id", "is not that of its fence in this ledger"));
    }
    // The name stands beside the id only where it differs from it.
    let name = |beside: &str, id: &str| if beside.is_empty() { id.to_owned() } else { beside.to_owned() };
    let resource = Resource::parse(&name(&message.resource, &message.work_id))?;
    let holder = Holder::parse(&name(&message.holder, &message.actor_id))?;
    let mode = MessageCodec::from_message(message.mode)?;
    if stored_work_id(&resource, mode, &message.lease_id) != message.work_id {
        return Err(invalid("work_id", "is not that of its resource"));
    }
    if stored_id(holder.as_str()) != message.actor_id {
        return Err(invalid("actor_id", "is not that of its holder"));
    }
    Ok(IssuedLease {
        fence,
        resource,
        holder,
        principal: Principal::parse(&message.principal)?,
        terms: LeaseTerms {
            mode,
            issued_at: Tick(message.issued_at_tick),
            expires_at: Tick(message.expires_at_tick),
            ttl: TickDuration(message.ttl_ticks),
            renewals: 0,
            nonce: MessageCodec::from_message(message.nonce)?,
            labels: MessageCodec::from_message(message.labels)?,
        },
        key: MessageCodec::from_message(message.idempotency)?,
        ticket: (message.ticket != 0).then_some(Ticket(message.ticket)),
        continues: (message.continues != 0).then_some(Fence(message.continues)),
        authority: message.authority.map(crate::kernel::work::codec::authority_from_message).transpose()?,
    })
}

fn decode_wait(message: proto::WaitEvent) -> Result<Event, InvalidInput> {
    Ok(match message.event.ok_or_else(|| invalid("payload", "is empty"))? {
        wait_event::Event::Queued(queued) => Event::Queued(MessageCodec::from_message(queued)?),
        wait_event::Event::Left(ended) => {
            let end = MessageCodec::from_message(ended.end)?;
            Event::Left { ticket: Ticket(ended.ticket), at: Tick(ended.tick), end }
        }
    })
}

fn decode_clock(message: proto::ClockEvent) -> Result<Event, InvalidInput> {
    Ok(match message.event.ok_or_else(|| invalid("payload", "is empty"))? {
        clock_event::Event::Mark(mark) => {
            Event::Marked { at: Tick(mark.tick), reading: MessageCodec::from_message(mark.reading)? }
        }
        clock_event::Event::Resumed(resumed) => Event::Resumed {
            at: Tick(resumed.tick),
            reading: MessageCodec::from_message(resumed.reading)?,
            wall_anchor: resumed.wall_anchor,
            wall_clock: resumed.wall_clock,
        },
    })
}

fn decode_writer(message: &proto::WriterEvent) -> Result<Event, InvalidInput> {
    match message.event.ok_or_else(|| invalid("payload", "is empty"))? {
        writer_event::Event::Restored(restored) => Ok(Event::Restored {
            at: Tick(restored.tick),
            epoch: restored.epoch,
            fence: Fence(restored.fence),
            hold_until: Tick(restored.hold_until_tick),
        }),
    }
}

fn boxed<M, T: MessageCodec<M>>(message: M) -> Result<Box<T>, InvalidInput> {
    T::from_message(message).map(Box::new)
}

fn check_rate(tick_rate_hz: u64) -> Result<(), InvalidInput> {
    if tick_rate_hz == TICK_RATE_HZ { Ok(()) } else { Err(invalid("tick_rate_hz", "is not one million")) }
}

fn message<M: Message + Default>(record: &EventRecord) -> Result<M, DecodeError> {
    M::decode(record.payload.as_slice())
        .map_err(|source| DecodeError::Protobuf { event_type: record.event_type.clone(), source })
}

pub(in crate::kernel) fn invalid(field: &'static str, reason: &str) -> InvalidInput {
    InvalidInput::new(field, reason)
}

fn malformed(record: &EventRecord, input: InvalidInput) -> DecodeError {
    DecodeError::Malformed { event_type: record.event_type.clone(), input }
}
