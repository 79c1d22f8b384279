//! What the parts of the APIs consist of: each type lists its fields once, for both directions.

use std::sync::Arc;

use super::RestoreError;
use super::bytes::{Put, Take};
use crate::kernel::name::{Holder, Principal, Resource};
use crate::kernel::value::{Fence, Span, Tick, Ticket};
use crate::kernel::want::{Others, Want};
use crate::rules::names::is_text;

/// A value that stands in a checkpoint.
pub(super) trait Saved: Sized {
    fn put(&self, put: &mut Put<'_>);

    fn read(take: &mut Take<'_>) -> Result<Self, RestoreError>;
}

/// Saves a struct field by field, in the given order. `after` saves the distance from an earlier field, which is never 0;
/// `given` is a field that is not saved here. What was read is refused with a reason unless its condition holds.
macro_rules! saved {
    ($name:ident { $($field:ident $(after $base:ident)?),+ $(,)? } $(given $given:ident: $value:expr;)*
        $($reason:literal unless $holds:expr;)*) => {
        impl Saved for $name {
            fn put(&self, put: &mut Put<'_>) {
                $(saved!(@put put, self, $field $($base)?);)+
            }

            fn read(take: &mut Take<'_>) -> Result<Self, RestoreError> {
                $(let $field = saved!(@take take, $($base)?);)+
                let saved = $name { $($field,)+ $($given: $value,)* };
                $(
                    let holds: fn(&$name, Tick) -> bool = $holds;
                    take.ensure(holds(&saved, take.now), $reason)?;
                )*
                Ok(saved)
            }
        }
    };
    (@put $put:ident, $from:ident, $field:ident) => { $from.$field.put($put) };
    (@put $put:ident, $from:ident, $field:ident $base:ident) => {
        $put.number($from.$field.since($from.$base).0)
    };
    (@take $take:ident,) => { Saved::read($take)? };
    (@take $take:ident, $base:ident) => {{
        let base: Tick = $base;
        Tick($take.after(base.0)?)
    }};
}
pub(super) use saved;

/// Saves an enum as the place of its value in `ALL`, which is the order of declaration.
macro_rules! saved_code {
    ($($name:ident, $unknown:literal;)+) => {
        $(impl Saved for $name {
            fn put(&self, put: &mut Put<'_>) {
                put.byte(*self as u8);
            }

            fn read(take: &mut Take<'_>) -> Result<Self, RestoreError> {
                let code = take.byte()?;
                $name::ALL.get(usize::from(code)).copied().ok_or_else(|| take.damaged($unknown))
            }
        })+
    };
}
pub(super) use saved_code;

macro_rules! saved_as {
    ($($name:ty: |$put:ident, $value:ident| $write:expr, |$take:ident| $read:expr;)+) => {
        $(impl Saved for $name {
            fn put(&self, $put: &mut Put<'_>) {
                let $value = self;
                $write;
            }

            fn read($take: &mut Take<'_>) -> Result<Self, RestoreError> {
                $read
            }
        })+
    };
}

saved_as! {
    u64: |put, number| put.number(*number), |take| take.number();
    u32: |put, number| put.number((*number).into()),
        |take| u32::try_from(take.number()?).map_err(|_| take.damaged("a number has over 32 bits"));
    bool: |put, is_so| put.byte((*is_so).into()), |take| flag(take);
    Fence: |put, fence| put.number(fence.0), |take| take.number().map(Fence);
    Ticket: |put, ticket| put.number(ticket.0), |take| take.number().map(Ticket);
    Span: |put, span| put.number(span.0), |take| take.number().map(Span);
    Tick: |put, tick| put.past(*tick), |take| take.past();
    [u8; 32]: |put, bytes| put.bytes(bytes), |take| take.array();
    Arc<str>: |put, text| put.text(text), |take| text(take);
    Holder: |put, name| put.text(name.as_str()), |take| take.name(Holder::parse);
    Principal: |put, name| put.text(name.as_str()), |take| take.name(Principal::parse);
    Resource: |put, name| put.text(name.as_str()), |take| take.name(Resource::parse);
    // What may be absent is one more than it is, or 0.
    Option<u64>: |put, number| put.number(number.map_or(0, |number| number.saturating_add(1))),
        |take| Ok(take.number()?.checked_sub(1));
    Option<u32>: |put, number| number.map(u64::from).put(put), |take| optional_u32(take);
    Option<Tick>: |put, tick| tick.map(|tick| tick.0).put(put), |take| Ok(Option::<u64>::read(take)?.map(Tick));
    // No name is empty.
    Option<Holder>: |put, name| put.text(name.as_ref().map(Holder::as_str).unwrap_or_default()),
        |take| optional_name(take);
}

impl<A: Saved, B: Saved> Saved for (A, B) {
    fn put(&self, put: &mut Put<'_>) {
        self.0.put(put);
        self.1.put(put);
    }

    fn read(take: &mut Take<'_>) -> Result<Self, RestoreError> {
        Ok((A::read(take)?, B::read(take)?))
    }
}

impl<T: Saved> Saved for Vec<T> {
    fn put(&self, put: &mut Put<'_>) {
        put.list(self.iter(), |put, value| value.put(put));
    }

    fn read(take: &mut Take<'_>) -> Result<Self, RestoreError> {
        (0..take.count(1)?).map(|_| T::read(take)).collect()
    }
}

/// A want for one resource.
impl Saved for Want {
    fn put(&self, put: &mut Put<'_>) {
        self.resource.put(put);
        put.want(self);
    }

    fn read(take: &mut Take<'_>) -> Result<Self, RestoreError> {
        let resource = Resource::read(take)?;
        take.want(resource, Others::default())
    }
}

impl Put<'_> {
    /// The count of the values, then each of them.
    pub(super) fn list<T>(&mut self, values: impl Iterator<Item = T>, each: impl Fn(&mut Self, T)) {
        let values: Vec<T> = values.collect();
        self.count(values.len());
        values.into_iter().for_each(|value| each(self, value));
    }

    /// Whether there is a value, and that.
    pub(super) fn optional<T: Saved>(&mut self, value: Option<&T>) {
        value.is_some().put(self);
        value.into_iter().for_each(|value| value.put(self));
    }
}

impl Take<'_> {
    pub(super) fn optional<T: Saved>(&mut self) -> Result<Option<T>, RestoreError> {
        if flag(self)? { T::read(self).map(Some) } else { Ok(None) }
    }
}

fn flag(take: &mut Take<'_>) -> Result<bool, RestoreError> {
    let code = take.byte()?;
    take.ensure(code <= 1, "it is neither yes nor no")?;
    Ok(code == 1)
}

fn text(take: &mut Take<'_>) -> Result<Arc<str>, RestoreError> {
    let text = take.text()?;
    take.ensure(is_text(text), "a text cannot be stored")?;
    Ok(text.into())
}

fn optional_u32(take: &mut Take<'_>) -> Result<Option<u32>, RestoreError> {
    let number = Option::<u64>::read(take)?.map(u32::try_from).transpose();
    number.map_err(|_| take.damaged("a number has over 32 bits"))
}

fn optional_name(take: &mut Take<'_>) -> Result<Option<Holder>, RestoreError> {
    let text = take.text()?;
    let name = (!text.is_empty()).then(|| Holder::parse(text)).transpose();
    name.map_err(|_| take.damaged("a name is none"))
}
