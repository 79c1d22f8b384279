//! The only source of randomness in a simulation: everything that happens follows from the seed.

/// A small generator of good quality (SplitMix64). Not for secrets.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xA076_1D64_78BD_642F) ^ 0xE703_7ED1_A0B4_28DB)
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// A number from `low` up to, and without, `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low)
    }

    /// Whether something that happens `percent` times in a hundred happens now.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of `choices`.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[usize::try_from(self.below(choices.len() as u64)).unwrap_or(0)]
    }

    /// Mostly short, sometimes long: microseconds from `low` to `high`, spread over the orders of magnitude.
    pub fn delay(&mut self, low: u64, high: u64) -> u64 {
        let span = u64::from((high / low.max(1)).max(2).ilog2());
        let magnitude = self.below(span + 1);
        let base = low << magnitude;
        (base + self.below(base + 1)).min(high)
    }
}
