//! Counts as text, with grouped digits.

use alloc::format;
use alloc::string::String;

/// Formats a count with its noun and thousands separators: `1 frame`, `0 frames`,
/// `1,234 more links`. The noun is singular; the plural adds `s`.
pub fn count_of(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(count))
}

/// Formats a count with thousands separators: `1,234,567`.
pub fn grouped(count: u64) -> String {
    let digits = format!("{count}");
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{count_of, grouped};

    #[test]
    fn thousands_are_apart() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn one_is_singular() {
        assert_eq!(count_of(0, "frame"), "0 frames");
        assert_eq!(count_of(1, "more link"), "1 more link");
        assert_eq!(count_of(2_000, "frame"), "2,000 frames");
    }
}
