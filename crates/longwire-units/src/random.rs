//! Seeded random streams, one per link and model, so that adding a model does not change another's
//! draws.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::{Nanos, Probability};

/// Purpose of a stream: the kind of model that draws from it.
///
/// The discriminants determine the meaning of a seed: changing one changes the outcome of every
/// recorded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Loss before the queue.
    EntryLoss = 1,
    /// Loss on the medium.
    MediumLoss = 2,
    /// Propagation delay and jitter.
    Delay = 3,
    /// Rate.
    Rate = 4,
    /// Queue discipline.
    Queue = 5,
    /// Corruption on the medium.
    Corruption = 6,
    /// Duplication on the medium.
    Duplication = 7,
    /// Delays of duplicates.
    CopyDelay = 8,
    /// Deliberate reordering.
    Reordering = 9,
    /// Rewriting.
    Rewrite = 10,
    /// Due times of generated frames.
    Arrivals = 11,
    /// Lengths of generated frames.
    Sizes = 12,
    /// Flows of generated frames.
    Flows = 13,
    /// Contents of generated frames.
    Payload = 14,
}

/// A random stream (xoshiro256++, Blackman and Vigna 2021).
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// Returns the stream for the only model with this purpose on a link.
    pub fn new(seed: u64, link: u32, purpose: Purpose) -> Stream {
        Stream::of_model(seed, link, purpose, "", 0)
    }

    /// Returns the stream of the `nth` (from 0) model named `model` with this purpose. It does not
    /// depend on models with other names.
    pub fn of_model(seed: u64, link: u32, purpose: Purpose, model: &str, nth: u32) -> Stream {
        Stream::of_change(seed, link, purpose, model, nth, 0)
    }

    /// Returns the stream of a model installed by the link's change number `change`; 0 yields the
    /// stream of [`Stream::of_model`].
    pub fn of_change(
        seed: u64,
        link: u32,
        purpose: Purpose,
        model: &str,
        nth: u32,
        change: u64,
    ) -> Stream {
        let place = u64::from(link) << 32 | u64::from(nth);
        let state = absorb(absorb(absorb(0, seed), place), purpose as u64);
        let mut state = model
            .bytes()
            .fold(state, |state, byte| absorb(state, byte.into()));
        if change > 0 {
            // Separates the name from the change number: no byte has this value.
            state = absorb(absorb(state, u64::MAX), change);
        }
        Stream(Xoshiro256PlusPlus::seed_from_u64(state))
    }

    /// Creates a stream from a seed alone.
    pub fn of_seed(seed: u64) -> Stream {
        Stream(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns `true` with probability `p`, exact to within 2^-64.
    #[inline]
    pub fn chance(&mut self, p: Probability) -> bool {
        p.accepts(self.next_u64())
    }

    /// Returns an unbiased uniform value in `0..=max` (Lemire 2019, multiply and reject).
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

    /// Returns a uniform value in (0, 1], in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns an exponentially distributed time by inversion, rounded to nanoseconds. The maximum
    /// is 36.7 times the mean, with probability 2^-53.
    pub fn exponential(&mut self, mean: Nanos) -> Nanos {
        let draw = -libm::log(self.unit()) * mean.as_nanos() as f64;
        // The cast truncates and saturates.
        Nanos::from_nanos((draw + 0.5) as u64)
    }
}

/// Mixes a word into a hash, so that adjacent seeds and links get unrelated streams. This is the
/// finaliser of SplitMix64 (Steele, Lea, Flood 2014).
#[inline]
pub fn absorb(state: u64, word: u64) -> u64 {
    let mut z = (state ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
