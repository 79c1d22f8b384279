//! Stored form of events: a record with a type, an actor and a protobuf message.
//!
//! The library of the work API reads the same records: see [`crate::lease`].

pub(super) mod decode;
mod encode;
pub(super) mod fields;

use std::borrow::Cow;
use std::ops::Deref;

pub use decode::{DecodeError, decode};
pub use encode::{EncodeContext, encode, encode_to};

use crate::rules::{ID_SEPARATOR, stored_id};
use crate::value::{LeaseMode, Resource};

/// The id under which a lease claims its resource. Where several leases may live on one resource, each
/// claims an id of its own; that they go together is the conflict table's word.
pub(super) fn stored_work_id<'a>(
    resource: &'a Resource,
    mode: LeaseMode,
    lease_id: &impl Deref<Target = str>,
) -> Cow<'a, str> {
    if mode.is_self_conflicting() {
        stored_id(resource.as_str())
    } else {
        stored_id(&format!("{resource}{ID_SEPARATOR}{}", &**lease_id)).into_owned().into()
    }
}

#[cfg(test)]
mod tests {
    use super::fields::{enum_number, enum_value};
    use super::*;
    use crate::kernel::event::{RevocationCause, WaitEnd};
    use crate::kernel::intent::IntentSessionEnd;
    use crate::proto;

    /// A number that moves would give old ledgers another meaning: the protobuf description has the last word.
    #[test]
    fn enum_numbers_match_the_protobuf_definition() {
        fn check<T: Copy + std::fmt::Debug + PartialEq>(all: &[T], names: impl Fn(i32) -> Option<String>) {
            for (place, one) in (0..).zip(all) {
                let stored = names(enum_number(place)).expect("a number of the description");
                assert_eq!(stored, format!("{one:?}"));
                assert_eq!(enum_value("field", all, enum_number(place)), Ok(*one));
            }
            let after = enum_number(u8::try_from(all.len()).expect("few values"));
            assert_eq!(names(after), None, "the description has more values");
            for unknown in [i32::MIN, -1, 0, after, i32::MAX] {
                assert!(enum_value("field", all, unknown).is_err(), "{unknown}");
            }
        }
        check(&LeaseMode::ALL, |number| Some(format!("{:?}", proto::Mode::try_from(number).ok()?)));
        check(&RevocationCause::ALL, |number| {
            Some(format!("{:?}", proto::RevocationCause::try_from(number).ok()?))
        });
        check(&WaitEnd::ALL, |number| Some(format!("{:?}", proto::WaitEnd::try_from(number).ok()?)));
        check(&IntentSessionEnd::ALL, |number| {
            Some(format!("{:?}", proto::SessionEnd::try_from(number).ok()?))
        });
        assert_eq!(LeaseMode::ALL.map(|mode| mode as u8), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(RevocationCause::ALL.map(|cause| cause as u8), [0, 1, 2, 3, 4, 5]);
        assert_eq!(WaitEnd::ALL.map(|end| end as u8), [0, 1, 2]);
        assert_eq!(IntentSessionEnd::ALL.map(|end| end as u8), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
