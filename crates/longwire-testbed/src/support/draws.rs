//! Seeded random numbers.

/// A reproducible sequence of numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Draws(pub u64);

impl Draws {
    /// Draws any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.any() % end
    }

    /// Draws one of these values.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}
