//! The values that all parts share: names, ticks, fences, modes, process ids and limits.

mod limits;
mod mode;
mod process_id;

pub use limits::*;
pub use mode::{LeaseMode, ModeSet};
pub use process_id::{BootId, ProcessId, RecordedProcess};

use std::fmt;
use std::sync::Arc;

use crate::rules::{
    InvalidInput, MAX_NAME_BYTES, MAX_RESOURCE_BYTES, check_name, check_name_within, is_stored_verbatim,
    stored_id,
};

/// An instant on the registrar's own clock, in microseconds. It never goes back, and it alone decides expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tick(pub u64);

/// A length of time in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TickDuration(pub u64);

pub const TICK_RATE_HZ: u64 = 1_000_000;

impl Tick {
    /// The instant `span` later, or nothing when that is beyond the end of time.
    pub fn checked_add(self, span: TickDuration) -> Option<Tick> {
        self.0.checked_add(span.0).map(Tick)
    }

    /// The instant `span` later, or the end of time.
    pub fn saturating_add(self, span: TickDuration) -> Tick {
        Tick(self.0.saturating_add(span.0))
    }

    /// How long ago `earlier` was; nothing if it is not earlier.
    pub fn since(self, earlier: Tick) -> TickDuration {
        TickDuration(self.0.saturating_sub(earlier.0))
    }
}

impl TickDuration {
    pub const fn from_millis(milliseconds: u64) -> TickDuration {
        TickDuration(milliseconds.saturating_mul(1_000))
    }

    pub const fn from_secs(seconds: u64) -> TickDuration {
        TickDuration(seconds.saturating_mul(TICK_RATE_HZ))
    }

    /// This length in whole milliseconds, rounded down, so that nobody is promised time that is not there.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }
}

/// Grows with every grant in the whole ledger, so that a resource can refuse a writer that is late.
///
/// It is also the lease's identity: no two leases of one ledger ever have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fence(pub u64);

impl Fence {
    /// The largest fence. Programs that keep numbers as doubles still tell any two apart.
    pub const MAX: Fence = Fence((1 << 53) - 1);

    /// The fence that the next grant carries; nothing when they are used up.
    pub fn next(self) -> Option<Fence> {
        (self < Fence::MAX).then(|| Fence(self.0 + 1))
    }
}

/// A place in the queue. Smaller came earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticket(pub u64);

impl Ticket {
    /// The ticket that the next waiter draws; nothing when they are used up.
    pub fn next(self) -> Option<Ticket> {
        self.0.checked_add(1).map(Ticket)
    }
}

/// Tells the leases of one ledger from those of another: the first four bytes of the ledger's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LedgerTag(pub u32);

impl LedgerTag {
    /// The lease id that people and programs see.
    ///
    /// ```
    /// use tenure_core::kernel::{Fence, LedgerTag};
    /// let tag = LedgerTag(0x4f1d_09aa);
    /// assert_eq!(tag.lease_id(Fence(17)), "4f1d09aa-17");
    /// assert_eq!(tag.fence_of("4f1d09aa-17"), Some(Fence(17)));
    /// assert_eq!(tag.fence_of("00000000-17"), None, "a lease of another ledger");
    /// ```
    pub fn lease_id(self, fence: Fence) -> String {
        String::from(&*self.lease_id_text(fence))
    }

    /// The same without taking memory for it: each event has one.
    pub fn lease_id_text(self, fence: Fence) -> LeaseIdText {
        // From its end: which digit comes first is known last.
        let (mut bytes, mut start) = ([0; LeaseIdText::MAX_BYTES], LeaseIdText::MAX_BYTES);
        let mut number = fence.0;
        loop {
            let [digit, ..] = (number % 10).to_le_bytes();
            start -= 1;
            bytes[start] = b'0' + digit;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        let [a, b, c, d] = self.0.to_be_bytes();
        let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble & 15)];
        let [[a, b], [c, d], [e, f], [g, h]] = [a, b, c, d].map(|byte| [digit(byte >> 4), digit(byte)]);
        start -= LeaseIdText::PREFIX;
        bytes[start..start + LeaseIdText::PREFIX].copy_from_slice(&[a, b, c, d, e, f, g, h, b'-']);
        LeaseIdText { bytes, start }
    }

    /// The fence behind a lease id of this ledger. Only the exact form that [`Self::lease_id`] writes counts.
    pub fn fence_of(self, lease_id: &str) -> Option<Fence> {
        let (_, number) = lease_id.split_once('-')?;
        let fence = Fence(number.parse().ok()?);
        (fence <= Fence::MAX && *self.lease_id_text(fence) == *lease_id).then_some(fence)
    }
}

/// A lease id that stands where it is used.
#[derive(Debug, Clone, Copy)]
pub struct LeaseIdText {
    bytes: [u8; LeaseIdText::MAX_BYTES],
    /// From here on.
    start: usize,
}

impl LeaseIdText {
    /// A tag and a dash.
    const PREFIX: usize = 8 + 1;
    /// And the longest number.
    const MAX_BYTES: usize = Self::PREFIX + 20;

    /// The text, for whoever writes it into bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

impl std::ops::Deref for LeaseIdText {
    type Target = str;

    fn deref(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("digits and a dash")
    }
}

/// 16 random bytes from which, with a key that is not here, a lease's token is made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Nonce(pub [u8; 16]);

/// Part of a BLAKE3 digest: enough to tell two of one principal's requests apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RequestDigest(pub [u8; 16]);

// What goes into a token stays out of logs, even though it is no secret by itself.
impl fmt::Debug for Nonce {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Nonce(…)")
    }
}

impl fmt::Debug for RequestDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..4].iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl RequestDigest {
    pub fn of(bytes: &[u8]) -> RequestDigest {
        let mut digest = [0; 16];
        digest.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
        RequestDigest(digest)
    }
}

/// What an `Idempotency-Key` comes down to: the key, and what was asked under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdempotencyKey {
    /// Of the key that the caller chose.
    pub key: RequestDigest,
    /// Of the request's body: the same key with another body is a mistake of the caller's.
    pub body: RequestDigest,
}

macro_rules! name {
    ($(#[$documentation:meta])* $name:ident, $field:literal, $max_length:expr) => {
        $(#[$documentation])*
        // Shared, because one name stands in a command, in its events, in the state and in answers.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks a name as it came in: not empty, at most 4 KiB, no control characters.
            pub fn parse(name: &str) -> Result<Self, InvalidInput> {
                check_name_within($field, name, $max_length)?;
                Ok(Self(name.into()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, formatter)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

name!(
    /// What is protected: `domain:name`, such as `deploy:prod` or `tuner:2`.
    Resource,
    "resource",
    MAX_RESOURCE_BYTES
);
name!(
    /// Who holds or waits: an actor id. It belongs to one [`Principal`].
    Holder,
    "holder",
    MAX_NAME_BYTES
);
name!(
    /// Who is allowed to speak: a token or a local user.
    Principal,
    "principal",
    MAX_NAME_BYTES
);

impl Holder {
    /// The holder as records name it: itself, or a digest where it is too long for an id.
    pub(crate) fn to_stored_id(&self) -> Holder {
        if is_stored_verbatim(&self.0) { self.clone() } else { Holder(stored_id(&self.0).into()) }
    }
}

/// What the caller wants to have noted beside a lease. It decides nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels(Option<Arc<[Label]>>);

type Label = (Box<str>, Box<str>);

impl Labels {
    pub const MAX: usize = 32;
    /// The longest label name and value, in bytes.
    pub const MAX_BYTES: usize = 256;

    /// Checks labels as they came in: at most 32, names and values of at most 256 bytes, each name once.
    pub fn parse<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, InvalidInput> {
        let mut labels: Vec<Label> = Vec::new();
        for (name, value) in pairs {
            check_name("labels", name)?;
            if name.len() > Self::MAX_BYTES || value.len() > Self::MAX_BYTES {
                let reason = format!("names and values have at most {} bytes", Self::MAX_BYTES);
                return Err(InvalidInput::new("labels", reason));
            }
            if value.chars().any(char::is_control) {
                return Err(InvalidInput::new("labels", "a value contains a control character"));
            }
            labels.push((name.into(), value.into()));
        }
        if labels.len() > Self::MAX {
            return Err(InvalidInput::new("labels", format!("at most {} are allowed", Self::MAX)));
        }
        labels.sort();
        if labels.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(InvalidInput::new("labels", "a name stands twice"));
        }
        Ok(Self((!labels.is_empty()).then(|| labels.into())))
    }

    /// Names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|labels| labels.iter()).map(|(name, value)| (name.as_ref(), value.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lease_id_is_the_ledger_tag_in_hex_and_the_fence() {
        for number in [0, 1, 9, 10, 11, 99, 100, 1_099_511_627_776, Fence::MAX.0, u64::MAX] {
            for tag in [0, 0xf, 0x4f1d_09aa, u32::MAX] {
                let expected = format!("{tag:08x}-{number}");
                assert_eq!(&*LedgerTag(tag).lease_id_text(Fence(number)), expected);
            }
        }
    }
}
