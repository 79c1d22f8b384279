//! The only source of randomness of a faulty disk.

/// A small generator of good quality (SplitMix64). Not for secrets.
#[derive(Debug, Clone)]
pub(crate) struct FaultRng(u64);

impl FaultRng {
    pub(crate) fn new(seed: u64) -> FaultRng {
        FaultRng(seed.wrapping_mul(0xA076_1D64_78BD_642F) ^ 0x8EBC_6AF0_9C88_C6E3)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % bound.max(1) as u64).unwrap_or(0)
    }

    /// Yes or no.
    pub(crate) fn random_bool(&mut self) -> bool {
        self.below(2) == 0
    }
}
