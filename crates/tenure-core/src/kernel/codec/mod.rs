//! How events are stored: a record with a type, an actor and a protobuf message.
//!
//! The work face's library reads the same records: see [`crate::lease`].

mod agent;
mod decode;
mod encode;
mod file;
mod intent;
mod work;

pub use decode::{DecodeError, decode};
pub use encode::{Stamp, encode, encode_to};

use std::borrow::Cow;
use std::ops::Deref;

use super::mode::Mode;
use super::name::Resource;
use crate::rules::names::{JOINT, stored_id};

/// The id under which a lease claims its resource. Where several leases may live on one resource, each
/// claims an id of its own; that they go together is the conflict table's word.
pub(super) fn work_id<'a>(
    resource: &'a Resource,
    mode: Mode,
    lease_id: &impl Deref<Target = str>,
) -> Cow<'a, str> {
    if mode.is_alone() {
        stored_id(resource.as_str())
    } else {
        stored_id(&format!("{resource}{JOINT}{}", &**lease_id)).into_owned().into()
    }
}
