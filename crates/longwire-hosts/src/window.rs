//! Replay protection.

/// Size of the window below the highest number.
const SIZE: u64 = 1024;

const WORDS: usize = (SIZE / 64) as usize;

/// Sliding window over datagram numbers (RFC 6479): each is accepted once, and none below
/// the window.
#[derive(Clone, Debug, Default)]
pub struct ReplayWindow {
    /// Highest number plus one; 0 before the first.
    next: u64,
    seen: [u64; WORDS],
}

impl ReplayWindow {
    /// Whether a number would be accepted.
    pub fn is_new(&self, number: u64) -> bool {
        if number >= self.next {
            return true;
        }
        let is_inside = self.next - number <= SIZE;
        is_inside && self.seen[word(number)] & bit(number) == 0
    }

    /// Records the number of an authenticated datagram.
    pub fn note(&mut self, number: u64) {
        if number >= self.next {
            if number - self.next >= SIZE {
                self.seen = [0; WORDS];
            } else {
                for skipped in self.next..number {
                    self.seen[word(skipped)] &= !bit(skipped);
                }
            }
            self.next = number + 1;
        }
        self.seen[word(number)] |= bit(number);
    }
}

fn word(number: u64) -> usize {
    (number / 64) as usize % WORDS
}

fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Numbers around the end of the window, compared with a set of accepted numbers.
    #[test]
    fn each_number_is_accepted_once() {
        let (mut window, mut seen) = (ReplayWindow::default(), BTreeSet::new());
        let (mut state, mut highest, mut accepted) = (7u64, 0u64, 0);
        for _ in 0..200_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let ahead = if state >> 58 == 0 { 3_000 } else { 3 };
            let number = (highest + (state >> 33) % ahead).saturating_sub((state >> 45) % 1_300);
            let expected = !seen.contains(&number) && (highest < SIZE || number > highest - SIZE);
            assert_eq!(window.is_new(number), expected, "{number} of {highest}");
            if expected {
                window.note(number);
                seen.insert(number);
                highest = highest.max(number);
                accepted += 1;
            }
        }
        assert!(accepted > 50_000 && accepted < 190_000, "{accepted}");
    }
}
