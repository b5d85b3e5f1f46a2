//! Formats values for humans, rounded. [`Display`](core::fmt::Display) of the units is exact.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

pub use self::grouped as count;

/// Formats microseconds in a suitable unit, with three digits.
pub fn micros(micros: f64) -> String {
    let (value, unit) = match micros {
        us if us >= 1e6 => (us / 1e6, "s"),
        us if us >= 1e3 => (us / 1e3, "ms"),
        us => (us, "us"),
    };
    three_digits(value, unit)
}

fn three_digits(value: f64, unit: &str) -> String {
    match value {
        0.0 => format!("0 {unit}"),
        v if v < 10.0 => format!("{v:.2} {unit}"),
        v if v < 100.0 => format!("{v:.1} {unit}"),
        v => format!("{v:.0} {unit}"),
    }
}

/// Formats nanoseconds since the start of a run, to milliseconds: `4.049 s`, `10 s`.
pub fn seconds(nanos: u64) -> String {
    let text = format!("{:.3}", nanos as f64 / 1e9);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} s")
}

/// Formats a rate: `12.3 Mbit/s`.
pub fn rate(bits: f64) -> String {
    let (value, unit) = match bits {
        b if b >= 1e9 => (b / 1e9, "Gbit/s"),
        b if b >= 1e6 => (b / 1e6, "Mbit/s"),
        b if b >= 1e3 => (b / 1e3, "kbit/s"),
        b => return format!("{b:.0} bit/s"),
    };
    three_digits(value, unit)
}

/// Formats a share: `0.0089%`, `0.02%`, `20.0%`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => "0%".to_owned(),
        // A share below one in 10^8.
        p if p < 1e-6 => "less than 0.000001%".to_owned(),
        // Two significant digits.
        p if p < 0.01 => format!("{p:.0$}%", (1.0 - libm::floor(libm::log10(p))) as usize),
        p if p < 10.0 => format!("{p:.2}%"),
        p if p < 99.95 => format!("{p:.1}%"),
        p => format!("{p:.0}%"),
    }
}

/// Formats a count with thousands separators and its noun: `1 frame`, `0 frames`, `1,234 more
/// links`. `noun` is singular; the plural adds `s`.
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
    use super::*;

    #[test]
    fn values_are_rounded_and_take_a_suitable_unit() {
        for (text, expected) in [
            (percent(0.0), "0%"),
            (percent(8.9e-5), "0.0089%"),
            (percent(1.2e-7), "0.000012%"),
            (percent(1e-8), "0.0000010%"),
            (percent(1e-12), "less than 0.000001%"),
            (percent(2e-4), "0.02%"),
            (percent(0.2), "20.0%"),
            (percent(1.0), "100%"),
            (seconds(0), "0 s"),
            (seconds(4_049_022_260), "4.049 s"),
            (seconds(10_000_000_000), "10 s"),
            (micros(0.0), "0 us"),
            (micros(0.35), "0.35 us"),
            (micros(12.34), "12.3 us"),
            (micros(1_234.0), "1.23 ms"),
            (micros(2_500_000.0), "2.50 s"),
            (grouped(0), "0"),
            (grouped(999), "999"),
            (grouped(1_234_567), "1,234,567"),
            (count_of(0, "frame"), "0 frames"),
            (count_of(1, "more link"), "1 more link"),
            (count_of(2_000, "frame"), "2,000 frames"),
        ] {
            assert_eq!(text, expected);
        }
    }
}
