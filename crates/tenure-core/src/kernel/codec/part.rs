//! What messages consist of: each event lists its fields once, for both directions.

use std::sync::Arc;

use super::decode::invalid;
use crate::kernel::event::{Cause, ClockReading, Queued, WaitEnd};
use crate::kernel::mode::Mode;
use crate::kernel::name::{Holder, Labels, Principal, Resource};
use crate::kernel::value::{Digest, Fence, Nonce, RequestKey, Span, Tick, Ticket};
use crate::kernel::want::{Others, Want};
use crate::rules::names::InvalidInput;
use crate::stored;

/// A value of an event, and how it stands in a message.
pub(super) trait Stored<M>: Sized {
    fn to_message(&self) -> M;

    fn of_message(message: M) -> Result<Self, InvalidInput>;
}

/// Stores a struct, or the variants of an enum of events: each field, and that of the message. `by` reads a field in
/// another way. The fields of a `flat` value stand in the message itself, and a `whole` variant is a struct.
macro_rules! fields {
    ($name:ident as $message:ident $fields:tt) => {
        impl Stored<stored::$message> for $name {
            fn to_message(&self) -> stored::$message {
                let fields!(@pattern [$name] $fields) = self;
                fields!(@message $message $fields)
            }

            fn of_message(message: stored::$message) -> Result<Self, InvalidInput> {
                Ok(fields!(@value [$name] message $fields))
            }
        }
    };
    ($name:ident in $module:ident { $($variant:ident as $part:ident $fields:tt)* } whole { $($whole:ident)* })
    => {
        impl Stored<stored::$name> for $name {
            fn to_message(&self) -> stored::$name {
                use stored::$module::Event;
                let event = match self {
                    $(fields!(@pattern [$name::$variant] $fields) => {
                        Event::$variant(fields!(@message $part $fields))
                    })*
                    $($name::$whole(whole) => Event::$whole(whole.to_message()),)*
                };
                stored::$name { event: Some(event) }
            }

            fn of_message(message: stored::$name) -> Result<Self, InvalidInput> {
                use stored::$module::Event;
                Ok(match message.event.ok_or_else(|| invalid("payload", "is empty"))? {
                    $(Event::$variant(message) => fields!(@value [$name::$variant] message $fields),)*
                    $(Event::$whole(whole) => $name::$whole(Stored::of_message(whole)?),)*
                })
            }
        }
    };
    (@pattern [$($name:tt)*] {
        $($field:ident: $stored:ident $(by $read:expr)?),*
        $(; $outer:ident: flat $inner:ident { $($part:ident: $place:ident $(by $read_part:expr)?),* })?
    }) => {
        $($name)* { $($field,)* $($outer: $inner { $($part),* },)? }
    };
    (@message $message:ident {
        $($field:ident: $stored:ident $(by $read:expr)?),*
        $(; $outer:ident: flat $inner:ident { $($part:ident: $place:ident $(by $read_part:expr)?),* })?
    }) => {
        stored::$message { $($stored: $field.to_message(),)* $($($place: $part.to_message(),)*)? }
    };
    (@value [$($name:tt)*] $message:ident {
        $($field:ident: $stored:ident $(by $read:expr)?),*
        $(; $outer:ident: flat $inner:ident { $($part:ident: $place:ident $(by $read_part:expr)?),* })?
    }) => {
        $($name)* {
            $($field: fields!(@read $message.$stored $(, $read)?),)*
            $($outer: $inner { $($part: fields!(@read $message.$place $(, $read_part)?)),* },)?
        }
    };
    (@read $value:expr) => { Stored::of_message($value)? };
    (@read $value:expr, $read:expr) => { ($read)($value)? };
}
pub(super) use fields;

macro_rules! stored_as {
    ($($name:ty as $message:ty: |$value:ident| $to:expr, |$from:ident| $of:expr;)+) => {
        $(impl Stored<$message> for $name {
            fn to_message(&self) -> $message {
                let $value = self;
                $to
            }

            fn of_message($from: $message) -> Result<Self, InvalidInput> {
                $of
            }
        })+
    };
}
pub(super) use stored_as;

stored_as! {
    u64 as u64: |number| *number, |number| Ok(number);
    Tick as u64: |tick| tick.0, |number| Ok(Tick(number));
    Span as u64: |span| span.0, |number| Ok(Span(number));
    Fence as u64: |fence| fence.0, |number| Ok(Fence(number));
    Ticket as u64: |ticket| ticket.0, |number| Ok(Ticket(number));
    Holder as String: |name| name.as_str().into(), |text| Holder::parse(&text);
    Principal as String: |name| name.as_str().into(), |text| Principal::parse(&text);
    Resource as String: |name| name.as_str().into(), |text| Resource::parse(&text);
    Arc<str> as String: |text| text.as_ref().into(), |text| Ok(text.into());
    Nonce as Vec<u8>: |nonce| nonce.0.to_vec(), |bytes| sixteen("nonce", &bytes).map(Nonce);
    Digest as Vec<u8>: |digest| digest.0.to_vec(), |bytes| sixteen("idempotency", &bytes).map(Digest);
    Mode as i32: |mode| number(*mode as u8), |number| value("mode", &Mode::ALL, number);
    Cause as i32: |cause| number(*cause as u8), |number| value("cause", &Cause::ALL, number);
    WaitEnd as i32: |end| number(*end as u8), |number| value("end", &WaitEnd::ALL, number);
    Others as Vec<String>: |others| others.iter().map(Stored::to_message).collect(),
        |names| Vec::of_message(names).map(|others: Vec<Resource>| Others::new(others));
    Labels as Vec<stored::Label>: |labels| labels.iter().map(label).collect(),
        |labels| Labels::parse(labels.iter().map(|label| (label.name.as_str(), label.value.as_str())));
    // No name is empty.
    Option<Holder> as String: |name| name.as_ref().map(Stored::to_message).unwrap_or_default(),
        |text| if text.is_empty() { Ok(None) } else { Holder::parse(&text).map(Some) };
    Want as Option<stored::Want>: |want| Some(want.to_message()), |want| required("want", want);
    ClockReading as Option<stored::ClockReading>: |reading| Some(reading.to_message()),
        |reading| required("reading", reading);
}

fields! { ClockReading as ClockReading { clock: clock, microseconds: microseconds } }

fields! { RequestKey as Idempotency { key: key, body: body } }

fields! {
    Want as Want {
        resource: resource, others: others, mode: mode, ttl: ttl_ticks, nonce: nonce, labels: labels
    }
}

fields! {
    Queued as WaitQueued {
        ticket: ticket, holder: holder, principal: principal, wants: wants, at: tick, until: until_tick,
        key: idempotency
    }
}

impl<M, T: Stored<M>> Stored<Vec<M>> for Vec<T> {
    fn to_message(&self) -> Vec<M> {
        self.iter().map(T::to_message).collect()
    }

    fn of_message(message: Vec<M>) -> Result<Self, InvalidInput> {
        message.into_iter().map(T::of_message).collect()
    }
}

impl<M, T: Stored<M>> Stored<Option<M>> for Option<T> {
    fn to_message(&self) -> Option<M> {
        self.as_ref().map(T::to_message)
    }

    fn of_message(message: Option<M>) -> Result<Self, InvalidInput> {
        message.map(T::of_message).transpose()
    }
}

pub(super) fn required<M, T: Stored<M>>(field: &'static str, message: Option<M>) -> Result<T, InvalidInput> {
    T::of_message(message.ok_or_else(|| invalid(field, "is missing"))?)
}

/// The number under which the value at `place` of an enum is stored. Protobuf keeps 0 for a field that is not set.
pub(super) fn number(place: u8) -> i32 {
    i32::from(place) + 1
}

pub(super) fn value<T: Copy>(field: &'static str, all: &[T], number: i32) -> Result<T, InvalidInput> {
    let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    known(field, place.and_then(|place| all.get(place)).copied())
}

pub(super) fn known<T>(field: &'static str, value: Option<T>) -> Result<T, InvalidInput> {
    value.ok_or_else(|| invalid(field, "is unknown"))
}

pub(super) fn sixteen(field: &'static str, bytes: &[u8]) -> Result<[u8; 16], InvalidInput> {
    bytes.try_into().map_err(|_| invalid(field, "does not have 16 bytes"))
}

fn label((name, value): (&str, &str)) -> stored::Label {
    stored::Label { name: name.into(), value: value.into() }
}
