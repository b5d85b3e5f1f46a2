//! Counts with their noun, in the singular or the plural.

use alloc::format;
use alloc::string::String;

/// Returns a count with its noun: `1 frame`, `0 frames`, `2 more links`. The
/// noun is given in the singular and takes an `s` in the plural.
pub fn number_of(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::number_of;

    #[test]
    fn one_is_singular() {
        assert_eq!(number_of(0, "frame"), "0 frames");
        assert_eq!(number_of(1, "more link"), "1 more link");
        assert_eq!(number_of(2, "frame"), "2 frames");
    }
}
