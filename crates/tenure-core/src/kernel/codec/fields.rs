//! What messages consist of: each event lists its fields once, for both directions.

use std::sync::Arc;

use super::decode::invalid;
use crate::kernel::event::{ClockReading, QueuedAcquire, RevocationCause, WaitEnd};
use crate::kernel::lease::lease_request::{Alternatives, LeaseRequest};
use crate::proto;
use crate::rules::InvalidInput;
use crate::value::{
    Fence, Holder, IdempotencyKey, Labels, LeaseMode, Nonce, Principal, RequestDigest, Resource, Tick,
    TickDuration, Ticket,
};

/// A value of an event, and how it stands in a message.
pub(in crate::kernel) trait MessageCodec<M>: Sized {
    fn to_message(&self) -> M;

    fn from_message(message: M) -> Result<Self, InvalidInput>;
}

/// Stores a struct, or the variants of an enum of events: each field, and that of the message. `by` reads a field in
/// another way. The fields of a `flat` value stand in the message itself, and a `whole` variant is a struct.
macro_rules! fields {
    ($name:ident as $message:ident $fields:tt) => {
        impl MessageCodec<proto::$message> for $name {
            fn to_message(&self) -> proto::$message {
                let fields!(@pattern [$name] $fields) = self;
                fields!(@message $message $fields)
            }

            fn from_message(message: proto::$message) -> Result<Self, InvalidInput> {
                Ok(fields!(@value [$name] message $fields))
            }
        }
    };
    ($name:ident in $module:ident { $($variant:ident as $part:ident $fields:tt)* } whole { $($whole:ident)* })
    => {
        impl MessageCodec<proto::$name> for $name {
            fn to_message(&self) -> proto::$name {
                use proto::$module::Event;
                let event = match self {
                    $(fields!(@pattern [$name::$variant] $fields) => {
                        Event::$variant(fields!(@message $part $fields))
                    })*
                    $($name::$whole(whole) => Event::$whole(whole.to_message()),)*
                };
                proto::$name { event: Some(event) }
            }

            fn from_message(message: proto::$name) -> Result<Self, InvalidInput> {
                use proto::$module::Event;
                Ok(match message.event.ok_or_else(|| invalid("payload", "is empty"))? {
                    $(Event::$variant(message) => fields!(@value [$name::$variant] message $fields),)*
                    $(Event::$whole(whole) => $name::$whole(MessageCodec::from_message(whole)?),)*
                })
            }
        }
    };
    (@pattern [$($name:tt)*] {
        $($field:ident: $stored:ident $(by $read:expr)?),*
        $(; $outer:ident: flat $nested:ident { $($part:ident: $place:ident $(by $read_part:expr)?),* })?
    }) => {
        $($name)* { $($field,)* $($outer: $nested { $($part),* },)? }
    };
    (@message $message:ident {
        $($field:ident: $stored:ident $(by $read:expr)?),*
        $(; $outer:ident: flat $nested:ident { $($part:ident: $place:ident $(by $read_part:expr)?),* })?
    }) => {
        proto::$message { $($stored: $field.to_message(),)* $($($place: $part.to_message(),)*)? }
    };
    (@value [$($name:tt)*] $message:ident {
        $($field:ident: $stored:ident $(by $read:expr)?),*
        $(; $outer:ident: flat $nested:ident { $($part:ident: $place:ident $(by $read_part:expr)?),* })?
    }) => {
        $($name)* {
            $($field: fields!(@read $message.$stored $(, $read)?),)*
            $($outer: $nested { $($part: fields!(@read $message.$place $(, $read_part)?)),* },)?
        }
    };
    (@read $value:expr) => { MessageCodec::from_message($value)? };
    (@read $value:expr, $read:expr) => { ($read)($value)? };
}
pub(in crate::kernel) use fields;

macro_rules! message_codec {
    ($($name:ty as $message:ty: |$value:ident| $to:expr, |$from:ident| $of:expr;)+) => {
        $(impl MessageCodec<$message> for $name {
            fn to_message(&self) -> $message {
                let $value = self;
                $to
            }

            fn from_message($from: $message) -> Result<Self, InvalidInput> {
                $of
            }
        })+
    };
}
pub(in crate::kernel) use message_codec;

message_codec! {
    u64 as u64: |number| *number, |number| Ok(number);
    Tick as u64: |tick| tick.0, |number| Ok(Tick(number));
    TickDuration as u64: |span| span.0, |number| Ok(TickDuration(number));
    Fence as u64: |fence| fence.0, |number| Ok(Fence(number));
    Ticket as u64: |ticket| ticket.0, |number| Ok(Ticket(number));
    Holder as String: |name| name.as_str().into(), |text| Holder::parse(&text);
    Principal as String: |name| name.as_str().into(), |text| Principal::parse(&text);
    Resource as String: |name| name.as_str().into(), |text| Resource::parse(&text);
    Arc<str> as String: |text| text.as_ref().into(), |text| Ok(text.into());
    Nonce as Vec<u8>: |nonce| nonce.0.to_vec(), |bytes| array_of_16("nonce", &bytes).map(Nonce);
    RequestDigest as Vec<u8>: |digest| digest.0.to_vec(), |bytes| array_of_16("idempotency", &bytes).map(RequestDigest);
    LeaseMode as i32: |mode| enum_number(*mode as u8), |number| enum_value("mode", &LeaseMode::ALL, number);
    RevocationCause as i32: |cause| enum_number(*cause as u8), |number| enum_value("cause", &RevocationCause::ALL, number);
    WaitEnd as i32: |end| enum_number(*end as u8), |number| enum_value("end", &WaitEnd::ALL, number);
    Alternatives as Vec<String>: |alternatives| alternatives.iter().map(MessageCodec::to_message).collect(),
        |names| Vec::from_message(names).map(|alternatives: Vec<Resource>| Alternatives::new(alternatives));
    Labels as Vec<proto::Label>: |labels| labels.iter().map(label).collect(),
        |labels| Labels::parse(labels.iter().map(|label| (label.name.as_str(), label.value.as_str())));
    // No name is empty.
    Option<Holder> as String: |name| name.as_ref().map(MessageCodec::to_message).unwrap_or_default(),
        |text| if text.is_empty() { Ok(None) } else { Holder::parse(&text).map(Some) };
    LeaseRequest as Option<proto::Want>: |request| Some(request.to_message()),
        |request| required("want", request);
    ClockReading as Option<proto::ClockReading>: |reading| Some(reading.to_message()),
        |reading| required("reading", reading);
}

fields! { ClockReading as ClockReading { clock: clock, microseconds: microseconds } }

fields! { IdempotencyKey as Idempotency { key: key, body: body } }

fields! {
    LeaseRequest as Want {
        resource: resource, alternatives: others, mode: mode, ttl: ttl_ticks, nonce: nonce, labels: labels
    }
}

fields! {
    QueuedAcquire as WaitQueued {
        ticket: ticket, holder: holder, principal: principal, requests: wants, at: tick, until: until_tick,
        key: idempotency
    }
}

impl<M, T: MessageCodec<M>> MessageCodec<Vec<M>> for Vec<T> {
    fn to_message(&self) -> Vec<M> {
        self.iter().map(T::to_message).collect()
    }

    fn from_message(message: Vec<M>) -> Result<Self, InvalidInput> {
        message.into_iter().map(T::from_message).collect()
    }
}

impl<M, T: MessageCodec<M>> MessageCodec<Option<M>> for Option<T> {
    fn to_message(&self) -> Option<M> {
        self.as_ref().map(T::to_message)
    }

    fn from_message(message: Option<M>) -> Result<Self, InvalidInput> {
        message.map(T::from_message).transpose()
    }
}

pub(in crate::kernel) fn required<M, T: MessageCodec<M>>(
    field: &'static str,
    message: Option<M>,
) -> Result<T, InvalidInput> {
    T::from_message(message.ok_or_else(|| invalid(field, "is missing"))?)
}

/// The number under which the value at `place` of an enum is stored. Protobuf keeps 0 for a field that is not set.
pub(in crate::kernel) fn enum_number(place: u8) -> i32 {
    i32::from(place) + 1
}

pub(in crate::kernel) fn enum_value<T: Copy>(
    field: &'static str,
    all: &[T],
    number: i32,
) -> Result<T, InvalidInput> {
    let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    require_known(field, place.and_then(|place| all.get(place)).copied())
}

pub(in crate::kernel) fn require_known<T>(field: &'static str, value: Option<T>) -> Result<T, InvalidInput> {
    value.ok_or_else(|| invalid(field, "is unknown"))
}

pub(in crate::kernel) fn array_of_16(field: &'static str, bytes: &[u8]) -> Result<[u8; 16], InvalidInput> {
    bytes.try_into().map_err(|_| invalid(field, "does not have 16 bytes"))
}

fn label((name, value): (&str, &str)) -> proto::Label {
    proto::Label { name: name.into(), value: value.into() }
}
