//! What the parts of a saved state consist of: each type lists its fields once, for both directions.

use std::sync::Arc;

use super::RestoreError;
use super::bytes::{CheckpointReader, CheckpointWriter};
use crate::kernel::event::{LeaseTerms, RevocationCause};
use crate::kernel::lease::lease_request::{Alternatives, LeaseRequest};
use crate::kernel::outcome::LeaseEnd;
use crate::lease::ReleaseReason;
use crate::rules::{InvalidInput, is_storable_text};
use crate::value::{
    Fence, Holder, IdempotencyKey, Labels, LeaseMode, Nonce, Principal, RecordedProcess, RequestDigest,
    Resource, Tick, TickDuration, Ticket,
};

pub(in crate::kernel) trait CheckpointCodec: Sized {
    fn write(&self, writer: &mut CheckpointWriter<'_>);

    fn read(reader: &mut CheckpointReader<'_>) -> Result<Self, RestoreError>;
}

/// Saves a struct field by field, in the given order. `after` saves the distance from an earlier field, which is never 0;
/// `preset` is a field that is not saved here. What was read is refused with a reason unless its condition holds.
macro_rules! checkpoint_struct {
    ($name:ident { $($field:ident $(after $base:ident)?),+ $(,)? } $(preset $preset:ident: $value:expr;)*
        $($reason:literal unless $holds:expr;)*) => {
        impl CheckpointCodec for $name {
            fn write(&self, writer: &mut CheckpointWriter<'_>) {
                $(checkpoint_struct!(@write writer, self, $field $($base)?);)+
            }

            fn read(reader: &mut CheckpointReader<'_>) -> Result<Self, RestoreError> {
                $(let $field = checkpoint_struct!(@read reader, $($base)?);)+
                let decoded = $name { $($field,)+ $($preset: $value,)* };
                $(
                    let holds: fn(&$name, Tick) -> bool = $holds;
                    reader.ensure(holds(&decoded, reader.now), $reason)?;
                )*
                Ok(decoded)
            }
        }
    };
    (@write $writer:ident, $from:ident, $field:ident) => { $from.$field.write($writer) };
    (@write $writer:ident, $from:ident, $field:ident $base:ident) => {
        $writer.varint($from.$field.since($from.$base).0)
    };
    (@read $reader:ident,) => { CheckpointCodec::read($reader)? };
    (@read $reader:ident, $base:ident) => {{
        let base: Tick = $base;
        Tick($reader.delta(base.0)?)
    }};
}
pub(in crate::kernel) use checkpoint_struct;

/// Saves an enum as the place of its value in `ALL`, which is the order of declaration.
macro_rules! checkpoint_enum {
    ($($name:ident, $unknown:literal;)+) => {
        $(impl CheckpointCodec for $name {
            fn write(&self, writer: &mut CheckpointWriter<'_>) {
                writer.byte(*self as u8);
            }

            fn read(reader: &mut CheckpointReader<'_>) -> Result<Self, RestoreError> {
                let code = reader.byte()?;
                $name::ALL.get(usize::from(code)).copied().ok_or_else(|| reader.damaged($unknown))
            }
        })+
    };
}
pub(in crate::kernel) use checkpoint_enum;

macro_rules! checkpoint_codec {
    ($($name:ty: |$writer:ident, $value:ident| $write:expr, |$reader:ident| $read:expr;)+) => {
        $(impl CheckpointCodec for $name {
            fn write(&self, $writer: &mut CheckpointWriter<'_>) {
                let $value = self;
                $write;
            }

            fn read($reader: &mut CheckpointReader<'_>) -> Result<Self, RestoreError> {
                $read
            }
        })+
    };
}
pub(in crate::kernel) use checkpoint_codec;

/// Saves whether there is a value, and that.
macro_rules! checkpoint_option {
    ($($name:ty;)+) => {
        $(impl CheckpointCodec for Option<$name> {
            fn write(&self, writer: &mut CheckpointWriter<'_>) {
                self.is_some().write(writer);
                self.iter().for_each(|value| value.write(writer));
            }

            fn read(reader: &mut CheckpointReader<'_>) -> Result<Self, RestoreError> {
                bool::read(reader)?.then(|| CheckpointCodec::read(reader)).transpose()
            }
        })+
    };
}
pub(in crate::kernel) use checkpoint_option;

checkpoint_codec! {
    u64: |writer, number| writer.varint(*number), |reader| reader.varint();
    u32: |writer, number| writer.varint((*number).into()),
        |reader| u32::try_from(reader.varint()?).map_err(|_| reader.damaged("a number has over 32 bits"));
    bool: |writer, is_so| writer.byte((*is_so).into()), |reader| read_flag(reader);
    Fence: |writer, fence| writer.varint(fence.0), |reader| reader.varint().map(Fence);
    Ticket: |writer, ticket| writer.varint(ticket.0), |reader| reader.varint().map(Ticket);
    TickDuration: |writer, span| writer.varint(span.0), |reader| reader.varint().map(TickDuration);
    Tick: |writer, tick| writer.past_tick(*tick), |reader| reader.past_tick();
    Nonce: |writer, nonce| writer.bytes(&nonce.0), |reader| reader.array().map(Nonce);
    RequestDigest: |writer, digest| writer.bytes(&digest.0), |reader| reader.array().map(RequestDigest);
    Labels: |writer, labels| writer.list(labels.iter(), CheckpointWriter::label), |reader| read_labels(reader);
    LeaseEnd: |writer, end| writer.byte(lease_end_code(*end)), |reader| read_lease_end(reader);
    Arc<str>: |writer, text| writer.text(text), |reader| read_text(reader);
    Holder: |writer, name| writer.text(name.as_str()), |reader| reader.name(Holder::parse);
    Principal: |writer, name| writer.text(name.as_str()), |reader| reader.name(Principal::parse);
    Resource: |writer, name| writer.text(name.as_str()), |reader| reader.name(Resource::parse);
    RecordedProcess: |writer, process| writer.text(&process.to_string()), |reader| reader.name(RecordedProcess::parse);
    // What may be absent is one more than it is, or 0.
    Option<u64>: |writer, number| writer.varint(number.map_or(0, |number| number.saturating_add(1))),
        |reader| Ok(reader.varint()?.checked_sub(1));
    Option<u32>: |writer, number| number.map(u64::from).write(writer), |reader| read_optional_u32(reader);
    Option<Tick>: |writer, tick| tick.map(|tick| tick.0).write(writer), |reader| Ok(Option::<u64>::read(reader)?.map(Tick));
    // No name is empty.
    Option<Holder>: |writer, name| writer.text(name.as_ref().map(Holder::as_str).unwrap_or_default()),
        |reader| read_optional_name(reader);
}

impl<A: CheckpointCodec, B: CheckpointCodec> CheckpointCodec for (A, B) {
    fn write(&self, writer: &mut CheckpointWriter<'_>) {
        self.0.write(writer);
        self.1.write(writer);
    }

    fn read(reader: &mut CheckpointReader<'_>) -> Result<Self, RestoreError> {
        Ok((A::read(reader)?, B::read(reader)?))
    }
}

impl<T: CheckpointCodec> CheckpointCodec for Vec<T> {
    fn write(&self, writer: &mut CheckpointWriter<'_>) {
        writer.list(self.iter(), |writer, value| value.write(writer));
    }

    fn read(reader: &mut CheckpointReader<'_>) -> Result<Self, RestoreError> {
        (0..reader.count(1)?).map(|_| T::read(reader)).collect()
    }
}

checkpoint_enum! { LeaseMode, "it is held in an unknown mode"; }

checkpoint_struct! { IdempotencyKey { key, body } }

impl LeaseTerms {
    pub(in crate::kernel) const MIN_BYTES: usize = 6 + 16;
}

checkpoint_struct! {
    LeaseTerms { mode, issued_at, expires_at after issued_at, ttl, renewals, nonce, labels }
    "a lease has no length" unless |terms, _| terms.ttl > TickDuration(0);
}

/// A request for one resource.
impl CheckpointCodec for LeaseRequest {
    fn write(&self, writer: &mut CheckpointWriter<'_>) {
        self.resource.write(writer);
        writer.request(self);
    }

    fn read(reader: &mut CheckpointReader<'_>) -> Result<Self, RestoreError> {
        let resource = Resource::read(reader)?;
        reader.request(resource, Alternatives::default())
    }
}

impl CheckpointWriter<'_> {
    /// The count of the values, then each of them.
    pub(in crate::kernel) fn list<T>(
        &mut self,
        values: impl Iterator<Item = T>,
        each: impl Fn(&mut Self, T),
    ) {
        let values: Vec<T> = values.collect();
        self.count(values.len());
        values.into_iter().for_each(|value| each(self, value));
    }

    fn label(&mut self, (name, value): (&str, &str)) {
        self.text(name);
        self.text(value);
    }

    /// A number that grows: its distance from `before`, which it becomes.
    pub(in crate::kernel) fn delta(&mut self, before: &mut u64, number: u64) {
        self.varint(number - *before);
        *before = number;
    }

    /// What is wanted, but for the resources, which stand before it.
    pub(in crate::kernel) fn request(&mut self, request: &LeaseRequest) {
        request.mode.write(self);
        request.ttl.write(self);
        request.nonce.write(self);
        request.labels.write(self);
    }

    /// A tick that has passed.
    pub(in crate::kernel) fn past_tick(&mut self, tick: Tick) {
        self.varint(self.now.since(tick).0);
    }
}

impl CheckpointReader<'_> {
    /// A list in the order of its values' keys, no two of which are the same.
    pub(in crate::kernel) fn ascending_list<T: CheckpointCodec, K: Ord>(
        &mut self,
        key: impl Fn(&T) -> K,
        otherwise: &'static str,
    ) -> Result<Vec<T>, RestoreError> {
        let values = Vec::<T>::read(self)?;
        self.ensure(values.is_sorted_by(|one, next| key(one) < key(next)), otherwise)?;
        Ok(values)
    }

    /// What is wanted, but for the resources, which stand before it.
    pub(in crate::kernel) fn request(
        &mut self,
        resource: Resource,
        alternatives: Alternatives,
    ) -> Result<LeaseRequest, RestoreError> {
        let (mode, (ttl, (nonce, labels))) = CheckpointCodec::read(self)?;
        self.ensure(ttl > TickDuration(0), "a lease has no length")?;
        Ok(LeaseRequest { resource, alternatives, mode, ttl, nonce, labels })
    }

    /// A tick that has passed.
    pub(in crate::kernel) fn past_tick(&mut self) -> Result<Tick, RestoreError> {
        self.tick_before(self.now)
    }

    /// A tick at or before `tick`.
    pub(in crate::kernel) fn tick_before(&mut self, tick: Tick) -> Result<Tick, RestoreError> {
        let since = self.varint()?;
        tick.0.checked_sub(since).map(Tick).ok_or_else(|| self.damaged("it was before all time"))
    }

    /// A name, checked as if it had just come in.
    pub(in crate::kernel) fn name<T>(
        &mut self,
        parse: impl FnOnce(&str) -> Result<T, InvalidInput>,
    ) -> Result<T, RestoreError> {
        let text = self.text()?;
        parse(text).map_err(|_| self.damaged("a name is none"))
    }
}

fn read_flag(reader: &mut CheckpointReader<'_>) -> Result<bool, RestoreError> {
    let code = reader.byte()?;
    reader.ensure(code <= 1, "it is neither yes nor no")?;
    Ok(code == 1)
}

fn read_text(reader: &mut CheckpointReader<'_>) -> Result<Arc<str>, RestoreError> {
    let text = reader.text()?;
    reader.ensure(is_storable_text(text), "a text cannot be stored")?;
    Ok(text.into())
}

fn read_optional_u32(reader: &mut CheckpointReader<'_>) -> Result<Option<u32>, RestoreError> {
    let number = Option::<u64>::read(reader)?.map(u32::try_from).transpose();
    number.map_err(|_| reader.damaged("a number has over 32 bits"))
}

fn read_optional_name(reader: &mut CheckpointReader<'_>) -> Result<Option<Holder>, RestoreError> {
    let text = reader.text()?;
    let name = (!text.is_empty()).then(|| Holder::parse(text)).transpose();
    name.map_err(|_| reader.damaged("a name is none"))
}

fn read_labels(reader: &mut CheckpointReader<'_>) -> Result<Labels, RestoreError> {
    let count = reader.count(2)?;
    reader.ensure(count <= Labels::MAX, "it has too many labels")?;
    let mut labels: Vec<(&str, &str)> = Vec::new();
    for _ in 0..count {
        let label = (reader.text()?, reader.text()?);
        let ascends = labels.last().is_none_or(|before| before.0 < label.0);
        reader.ensure(ascends, "labels are not in their order")?;
        labels.push(label);
    }
    Labels::parse(labels).map_err(|_| reader.damaged("a label is none"))
}

fn read_lease_end(reader: &mut CheckpointReader<'_>) -> Result<LeaseEnd, RestoreError> {
    let code = reader.byte()?;
    let found = LEASE_ENDS.into_iter().find(|end| lease_end_code(*end) == code);
    found.ok_or_else(|| reader.damaged("it ended in an unknown way"))
}

/// Whatever [`lease_end_code`] has a code for.
const LEASE_ENDS: [LeaseEnd; 10] = [
    LeaseEnd::Expired,
    LeaseEnd::Released(ReleaseReason::Completed),
    LeaseEnd::Released(ReleaseReason::Aborted),
    LeaseEnd::Released(ReleaseReason::Voluntary),
    LeaseEnd::Revoked(RevocationCause::Revoked),
    LeaseEnd::Revoked(RevocationCause::Reclaimed),
    LeaseEnd::Revoked(RevocationCause::Wiped),
    LeaseEnd::Revoked(RevocationCause::Disconnected),
    LeaseEnd::Revoked(RevocationCause::Transferred),
    LeaseEnd::Revoked(RevocationCause::Died),
];

fn lease_end_code(end: LeaseEnd) -> u8 {
    match end {
        LeaseEnd::Expired => 0,
        LeaseEnd::Released(ReleaseReason::Completed) => 1,
        LeaseEnd::Released(ReleaseReason::Aborted) => 2,
        LeaseEnd::Released(ReleaseReason::Voluntary) => 3,
        LeaseEnd::Revoked(RevocationCause::Revoked) => 4,
        LeaseEnd::Revoked(RevocationCause::Reclaimed) => 5,
        LeaseEnd::Revoked(RevocationCause::Wiped) => 6,
        LeaseEnd::Revoked(RevocationCause::Disconnected) => 7,
        LeaseEnd::Revoked(RevocationCause::Transferred) => 8,
        LeaseEnd::Revoked(RevocationCause::Died) => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A code that moves would give old checkpoints another meaning.
    #[test]
    fn mode_and_lease_end_codes_are_stable() {
        assert_eq!(LEASE_ENDS.map(lease_end_code), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(LeaseMode::ALL.map(|mode| mode as u8), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(
            LeaseEnd::read(&mut CheckpointReader::new(&[10])).is_err()
                && LeaseMode::read(&mut CheckpointReader::new(&[8])).is_err()
        );
    }

    #[test]
    fn labels_round_trip_and_must_be_sorted() {
        let read = |bytes: &[u8]| Labels::read(&mut CheckpointReader::new(bytes));
        let mut bytes = Vec::new();
        let mut write = |piece: &[u8]| bytes.extend_from_slice(piece);
        let labels = Labels::parse([("b", "2"), ("a", "")]).expect("labels");
        let mut writer = CheckpointWriter::new(&mut write, Tick(0));
        labels.write(&mut writer);
        writer.finish();
        assert_eq!(bytes, b"\x02\x01a\x00\x01b\x012");
        assert_eq!(read(&bytes), Ok(labels));
        assert!(read(b"\x02\x01b\x012\x01a\x00").is_err(), "not ascending");
        assert!(read(b"\x02\x01a\x00\x01a\x00").is_err(), "one name twice");
        assert!(read(b"\x01\x01\x0a\x00").is_err(), "a control character");
    }
}
