//! Backoff of attempts to reach the API server.

use std::time::Duration;

use kube::runtime::utils::Backoff as ResetBackoff;

/// First delay.
const FIRST: Duration = Duration::from_millis(100);

/// Longest delay, so that links follow soon after an outage of the API server.
const LAST: Duration = Duration::from_secs(3);

/// Delays that double from 100 ms to 3 s, less up to half as jitter.
#[derive(Debug)]
pub struct Backoff {
    next: Duration,
    /// State of a linear congruential generator, which is good enough for jitter.
    random: u32,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff {
            next: FIRST,
            random: std::process::id(),
        }
    }
}

impl Iterator for Backoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let time = self.next;
        self.next = (time * 2).min(LAST);
        self.random = self
            .random
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        let less = time / 2 * (self.random >> 16) / (1 << 16);
        Some(time - less)
    }
}

impl ResetBackoff for Backoff {
    fn reset(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_limit() {
        let mut backoff = Backoff::default();
        let times: Vec<Duration> = backoff.by_ref().take(12).collect();
        assert!(times[0] <= FIRST && times[0] >= FIRST / 2);
        assert!(times[11] <= LAST && times[11] >= LAST / 2);
        backoff.reset();
        assert!(backoff.next().expect("no end") <= FIRST);
    }
}
