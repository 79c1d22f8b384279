//! What the parts of a saved state consist of: each type lists its fields once, for both directions.

use std::sync::Arc;

use super::RestoreError;
use super::bytes::{Put, Take};
use crate::kernel::answer::End;
use crate::kernel::event::Cause;
use crate::kernel::mode::Mode;
use crate::kernel::name::{Holder, Labels, Principal, Resource};
use crate::kernel::state::Terms;
use crate::kernel::value::{Digest, Fence, Nonce, RequestKey, Span, Tick, Ticket};
use crate::kernel::want::{Others, Want};
use crate::lease::ReleaseReason;
use crate::rules::names::{InvalidInput, is_text};

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
pub(super) use saved_as;

/// Saves whether there is a value, and that.
macro_rules! saved_option {
    ($($name:ty;)+) => {
        $(impl Saved for Option<$name> {
            fn put(&self, put: &mut Put<'_>) {
                self.is_some().put(put);
                self.iter().for_each(|value| value.put(put));
            }

            fn read(take: &mut Take<'_>) -> Result<Self, RestoreError> {
                bool::read(take)?.then(|| Saved::read(take)).transpose()
            }
        })+
    };
}
pub(super) use saved_option;

saved_as! {
    u64: |put, number| put.number(*number), |take| take.number();
    u32: |put, number| put.number((*number).into()),
        |take| u32::try_from(take.number()?).map_err(|_| take.damaged("a number has over 32 bits"));
    bool: |put, is_so| put.byte((*is_so).into()), |take| flag(take);
    Fence: |put, fence| put.number(fence.0), |take| take.number().map(Fence);
    Ticket: |put, ticket| put.number(ticket.0), |take| take.number().map(Ticket);
    Span: |put, span| put.number(span.0), |take| take.number().map(Span);
    Tick: |put, tick| put.past(*tick), |take| take.past();
    Nonce: |put, nonce| put.bytes(&nonce.0), |take| take.array().map(Nonce);
    Digest: |put, digest| put.bytes(&digest.0), |take| take.array().map(Digest);
    Labels: |put, labels| put.list(labels.iter(), Put::label), |take| labels(take);
    End: |put, end| put.byte(code_of_end(*end)), |take| end(take);
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

saved_code! { Mode, "it is held in an unknown mode"; }

saved! { RequestKey { key, body } }

impl Terms {
    pub(super) const LEAST: usize = 6 + 16;
}

saved! {
    Terms { mode, issued_at, expires_at after issued_at, ttl, renewals, nonce, labels }
    "a lease has no length" unless |terms, _| terms.ttl > Span(0);
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

    fn label(&mut self, (name, value): (&str, &str)) {
        self.text(name);
        self.text(value);
    }

    /// A number that grows: its distance from `before`, which it becomes.
    pub(super) fn after(&mut self, before: &mut u64, number: u64) {
        self.number(number - *before);
        *before = number;
    }

    /// What is wanted, but for the resources, which stand before it.
    pub(super) fn want(&mut self, want: &Want) {
        want.mode.put(self);
        want.ttl.put(self);
        want.nonce.put(self);
        want.labels.put(self);
    }

    /// A tick that has passed.
    pub(super) fn past(&mut self, tick: Tick) {
        self.number(self.now.since(tick).0);
    }
}

impl Take<'_> {
    /// A list in the order of its values' keys, no two of which are the same.
    pub(super) fn ascending<T: Saved, K: Ord>(
        &mut self,
        key: impl Fn(&T) -> K,
        otherwise: &'static str,
    ) -> Result<Vec<T>, RestoreError> {
        let values = Vec::<T>::read(self)?;
        self.ensure(values.is_sorted_by(|one, next| key(one) < key(next)), otherwise)?;
        Ok(values)
    }

    /// What is wanted, but for the resources, which stand before it.
    pub(super) fn want(&mut self, resource: Resource, others: Others) -> Result<Want, RestoreError> {
        let (mode, (ttl, (nonce, labels))) = Saved::read(self)?;
        self.ensure(ttl > Span(0), "a lease has no length")?;
        Ok(Want { resource, others, mode, ttl, nonce, labels })
    }

    /// A tick that has passed.
    pub(super) fn past(&mut self) -> Result<Tick, RestoreError> {
        self.before(self.now)
    }

    /// A tick at or before `tick`.
    pub(super) fn before(&mut self, tick: Tick) -> Result<Tick, RestoreError> {
        let since = self.number()?;
        tick.0.checked_sub(since).map(Tick).ok_or_else(|| self.damaged("it was before all time"))
    }

    /// A name, checked as if it had just come in.
    pub(super) fn name<T>(
        &mut self,
        parse: impl FnOnce(&str) -> Result<T, InvalidInput>,
    ) -> Result<T, RestoreError> {
        let text = self.text()?;
        parse(text).map_err(|_| self.damaged("a name is none"))
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

fn labels(take: &mut Take<'_>) -> Result<Labels, RestoreError> {
    let count = take.count(2)?;
    take.ensure(count <= Labels::MOST, "it has too many labels")?;
    let mut labels: Vec<(&str, &str)> = Vec::new();
    for _ in 0..count {
        let label = (take.text()?, take.text()?);
        let ascends = labels.last().is_none_or(|before| before.0 < label.0);
        take.ensure(ascends, "labels are not in their order")?;
        labels.push(label);
    }
    Labels::parse(labels).map_err(|_| take.damaged("a label is none"))
}

fn end(take: &mut Take<'_>) -> Result<End, RestoreError> {
    let code = take.byte()?;
    let found = ENDS.into_iter().find(|end| code_of_end(*end) == code);
    found.ok_or_else(|| take.damaged("it ended in an unknown way"))
}

/// Whatever [`code_of_end`] has a code for.
const ENDS: [End; 10] = [
    End::Expired,
    End::Released(ReleaseReason::Completed),
    End::Released(ReleaseReason::Aborted),
    End::Released(ReleaseReason::Voluntary),
    End::Revoked(Cause::Revoked),
    End::Revoked(Cause::Reclaimed),
    End::Revoked(Cause::Wiped),
    End::Revoked(Cause::Disconnected),
    End::Revoked(Cause::Transferred),
    End::Revoked(Cause::Died),
];

fn code_of_end(end: End) -> u8 {
    match end {
        End::Expired => 0,
        End::Released(ReleaseReason::Completed) => 1,
        End::Released(ReleaseReason::Aborted) => 2,
        End::Released(ReleaseReason::Voluntary) => 3,
        End::Revoked(Cause::Revoked) => 4,
        End::Revoked(Cause::Reclaimed) => 5,
        End::Revoked(Cause::Wiped) => 6,
        End::Revoked(Cause::Disconnected) => 7,
        End::Revoked(Cause::Transferred) => 8,
        End::Revoked(Cause::Died) => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A code that moves would give old checkpoints another meaning.
    #[test]
    fn mode_and_lease_end_codes_are_stable() {
        assert_eq!(ENDS.map(code_of_end), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(Mode::ALL.map(|mode| mode as u8), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(End::read(&mut Take::new(&[10])).is_err() && Mode::read(&mut Take::new(&[8])).is_err());
    }

    #[test]
    fn labels_round_trip_and_must_be_sorted() {
        let read = |bytes: &[u8]| Labels::read(&mut Take::new(bytes));
        let mut bytes = Vec::new();
        let mut write = |piece: &[u8]| bytes.extend_from_slice(piece);
        let labels = Labels::parse([("b", "2"), ("a", "")]).expect("labels");
        let mut put = Put::new(&mut write, Tick(0));
        labels.put(&mut put);
        put.finish();
        assert_eq!(bytes, b"\x02\x01a\x00\x01b\x012");
        assert_eq!(read(&bytes), Ok(labels));
        assert!(read(b"\x02\x01b\x012\x01a\x00").is_err(), "not ascending");
        assert!(read(b"\x02\x01a\x00\x01a\x00").is_err(), "one name twice");
        assert!(read(b"\x01\x01\x0a\x00").is_err(), "a control character");
    }
}
