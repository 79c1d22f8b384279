//! Which ledger: the name under which everything in it is signed.

use std::fmt;

use tenure_core::kernel::{Fence, LedgerTag};

/// The id of a ledger: 16 random bytes, made when it is created and never changed.
///
/// It is part of whatever is signed, so that nothing signed for one ledger counts in another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LedgerId(pub [u8; 16]);

impl LedgerId {
    /// What lease ids begin with.
    pub fn tag(self) -> LedgerTag {
        let [a, b, c, d, ..] = self.0;
        LedgerTag(u32::from_be_bytes([a, b, c, d]))
    }

    /// The id of the lease with this number in this ledger.
    pub fn lease_id(self, fence: Fence) -> String {
        self.tag().lease_id(fence)
    }

    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<LedgerId> {
        let mut id = [0; 16];
        hex::decode_to_slice(text, &mut id).is_ok().then_some(LedgerId(id))
    }
}

impl fmt::Display for LedgerId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for LedgerId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "LedgerId({self})")
    }
}
