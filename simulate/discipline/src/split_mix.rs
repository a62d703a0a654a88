//! Repeatable random choices for disciplines that make some.

/// The generator SplitMix64 of Steele, Lea and Flood, with one addition and two multiplications per number. It is good
/// enough to choose a queue or an item, and not for statistics in many dimensions.
#[derive(Debug, Clone)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A random number below `bound`, with a bias below bound ÷ 2⁶⁴.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let product = u128::from(self.next()) * bound as u128;
        #[expect(clippy::cast_possible_truncation, reason = "the upper half of the product is below `bound`")]
        let chosen = (product >> 64) as usize;
        chosen
    }
}
