//! Selects the frames whose departure is stamped.

/// Selects one frame in every `every`.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    /// 0 for none.
    every: u32,
    until_next: u32,
}

impl Sampler {
    /// Creates a sampler that selects one frame in `every`, beginning with the next.
    pub(super) fn new(every: u32) -> Sampler {
        Sampler {
            every,
            until_next: 0,
        }
    }

    /// Returns whether the next frame is selected.
    #[inline]
    pub(super) fn next(&mut self) -> bool {
        if self.every == 0 {
            return false;
        }
        let sampled = self.until_next == 0;
        self.until_next = if sampled {
            self.every - 1
        } else {
            self.until_next - 1
        };
        sampled
    }

    /// Reverts the last call, for a frame that was not accepted and will be pushed again.
    #[inline]
    pub(super) fn revert(&mut self) {
        if self.every > 0 {
            self.until_next = (self.until_next + 1) % self.every;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nth_frame_is_sampled() {
        let picked = |every| {
            let mut sampler = Sampler::new(every);
            (0..7)
                .map(|_| sampler.next())
                .filter(|sampled| *sampled)
                .count()
        };
        assert_eq!([0, 1, 2, 3, 7, 8].map(picked), [0, 7, 4, 3, 1, 1]);
    }

    #[test]
    fn a_repeated_frame_counts_once() {
        let mut sampler = Sampler::new(3);
        let mut picked = Vec::new();
        for _ in 0..6 {
            sampler.next();
            sampler.revert();
            picked.push(sampler.next());
        }
        assert_eq!(picked, [true, false, false, true, false, false]);
    }
}
