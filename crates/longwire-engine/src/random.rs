//! Seeded random streams: one per link and model, so that turning one model
//! on never changes another's draws.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::units::{Nanos, Probability};

/// Which of a link's models draws from a stream.
///
/// The numbers are part of what a seed means: changing one changes the
/// outcome of every recorded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Loss before the queue.
    EntryLoss = 1,
    /// Loss on the medium.
    MediumLoss = 2,
    /// Propagation delay and jitter.
    Delay = 3,
}

/// A random stream (xoshiro256++, Blackman and Vigna 2021).
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of one model of one link in a run with this seed.
    pub fn new(seed: u64, link: u32, purpose: Purpose) -> Stream {
        // Two rounds of mixing keep neighbouring seeds, links and purposes
        // apart before the generator's own SplitMix64 seeding.
        let place = mix(u64::from(link) << 32 | purpose as u64);
        Stream(Xoshiro256PlusPlus::seed_from_u64(mix(seed ^ place)))
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// True with probability `p`, exactly to within 2^-64.
    #[inline]
    pub fn chance(&mut self, p: Probability) -> bool {
        p.accepts(self.next_u64())
    }

    /// Uniform in `0..=max`, without bias (Lemire 2019, multiply and reject).
    pub fn up_to(&mut self, max: u64) -> u64 {
        let Some(span) = max.checked_add(1) else {
            return self.next_u64();
        };
        let mut product = u128::from(self.next_u64()) * u128::from(span);
        if (product as u64) < span {
            let threshold = span.wrapping_neg() % span;
            while (product as u64) < threshold {
                product = u128::from(self.next_u64()) * u128::from(span);
            }
        }
        (product >> 64) as u64
    }

    /// Uniform in the half-open interval (0, 1], with 53 bits.
    pub fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponential with this mean, by inversion; rounded down to whole
    /// nanoseconds, saturating.
    pub fn exponential(&mut self, mean: Nanos) -> Nanos {
        let draw = -libm::log(self.unit()) * mean.as_nanos() as f64;
        Nanos::from_nanos(draw as u64)
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
