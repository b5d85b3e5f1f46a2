//! Parses units in the syntax of `tc`: `10mbit`, `1.5gbit`, `20ms`, `64kb`, `100p`, `1%`.
//!
//! Numbers are decimal and exact: `1.5gbit` is 1,500,000,000 bit/s, and `0.3ns` is rejected rather
//! than rounded. A number without a unit is an error: units are never guessed.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::num::NonZeroU64;
use core::str::FromStr;

use super::{BitRate, Bytes, Correlation, Nanos, PacketRate, Packets, Probability, Speed};

/// Error in a value with a unit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum UnitError {
    #[error("'{text}' is not a number with a unit; for example: {example}")]
    NotANumber { text: String, example: &'static str },
    #[error("'{text}' is not a number; for example: {example}")]
    NotAPlainNumber { text: String, example: &'static str },
    #[error("'{text}' has no unit: {}", with_units(.text, .units))]
    MissingUnit {
        text: String,
        units: &'static [&'static str],
    },
    #[error("'{text}': unknown unit '{unit}'; {known}")]
    UnknownUnit {
        text: String,
        unit: String,
        known: &'static str,
    },
    #[error("'{text}' is negative; the minimum is 0")]
    Negative { text: String },
    #[error("'{text}' is finer than the resolution of {step}")]
    TooFine { text: String, step: &'static str },
    #[error("'{text}' is too large; the maximum is {most}")]
    TooLarge { text: String, most: &'static str },
    #[error("'{text}' is outside {range}")]
    OutOfRange { text: String, range: &'static str },
    #[error("'{text}' is zero; write 'unlimited' for a link without a rate")]
    ZeroRate { text: String },
}

/// Formats a number with each unit: `5ms or 5s`.
fn with_units(text: &str, units: &[&str]) -> String {
    let written = units.iter().map(|unit| with_unit(text, unit));
    written.collect::<Vec<_>>().join(" or ")
}

/// Formats a number with a unit. For `%`, also suggests reading a number below 1 as a ratio: `1% (a
/// share of 0.01) or 0.01%`.
#[must_use]
pub fn with_unit(text: &str, unit: &str) -> String {
    let share = percent_of_share(text).filter(|_| unit == "%");
    let share = share.map(|percent| format!("{percent}% (a share of {text}) or "));
    format!("{}{text}{unit}", share.unwrap_or_default())
}

/// Converts a decimal ratio below 1 to percent, exactly: `0.015` becomes `1.5`.
fn percent_of_share(text: &str) -> Option<String> {
    let (whole, fraction) = text.split_once('.')?;
    let fraction = fraction.trim_end_matches('0');
    if !whole.chars().all(|digit| digit == '0') || fraction.is_empty() {
        return None;
    }
    let (percent, rest) = match fraction.len() {
        1 => (format!("{fraction}0"), ""),
        _ => (fraction[..2].to_string(), &fraction[2..]),
    };
    let percent = percent.trim_start_matches('0');
    let percent = if percent.is_empty() { "0" } else { percent };
    let point = if rest.is_empty() { "" } else { "." };
    Some(format!("{percent}{point}{rest}"))
}

/// A decimal number: `whole` + `fraction` × 10^-`decimals`.
struct Decimal {
    whole: u128,
    fraction: u128,
    decimals: u32,
}

/// Maximum number of digits before the point, excluding leading zeros. Within this limit and the
/// next, a number times any unit (below 2^42) fits in 128 bits. Longer numbers are out of range or
/// too fine for every unit; exact fractions of a gb with more digits are rejected as too fine.
const WHOLE_DIGITS_MAX: usize = 18;
const FRACTION_DIGITS_MAX: usize = 24;

/// The reason why a number does not fit its unit.
enum Unfit {
    TooLarge,
    TooFine,
    NotANumber,
}

impl Decimal {
    /// Parses digits with an optional point; returns `None` for other text.
    fn read(text: &str) -> Option<Result<Decimal, Unfit>> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |c: char| c.is_ascii_digit();
        if whole.len() + fraction.len() == 0 || !whole.chars().chain(fraction.chars()).all(digits) {
            return None;
        }
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        if whole.len() > WHOLE_DIGITS_MAX {
            return Some(Err(Unfit::TooLarge));
        }
        if fraction.len() > FRACTION_DIGITS_MAX {
            return Some(Err(Unfit::TooFine));
        }
        Some(Ok(Decimal {
            whole: number(whole),
            fraction: number(fraction),
            decimals: fraction.len() as u32,
        }))
    }

    /// Multiplies by `scale`, if the result is an integer.
    fn times(&self, scale: u128) -> Result<u128, Unfit> {
        let divisor = 10u128.pow(self.decimals);
        let part = self.fraction * scale;
        if !part.is_multiple_of(divisor) {
            return Err(Unfit::TooFine);
        }
        Ok(self.whole * scale + part / divisor)
    }

    /// Multiplies by 10^`exponent`, if the result is an integer.
    fn times_power(&self, exponent: &str) -> Result<u64, Unfit> {
        if self.whole == 0 && self.fraction == 0 {
            return Ok(0);
        }
        // An exponent above 32 bits is too large for any non-zero number within the digit limits.
        let exponent = exponent.parse().unwrap_or(u32::MAX);
        if self.decimals > exponent {
            return Err(Unfit::TooFine);
        }
        let scale = 10u128.checked_pow(exponent).filter(|_| exponent <= 19);
        let value = self.times(scale.ok_or(Unfit::TooLarge)?)?;
        u64::try_from(value).map_err(|_| Unfit::TooLarge)
    }
}

/// Parses decimal digits; the caller limits their number.
fn number(digits: &str) -> u128 {
    let digits = digits.bytes().map(|digit| u128::from(digit - b'0'));
    digits.fold(0, |value, digit| value * 10 + digit)
}

fn starts_a_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

fn refuse_negative(text: &str) -> Result<(), UnitError> {
    if text.strip_prefix('-').is_some_and(starts_a_number) {
        return Err(UnitError::Negative { text: text.into() });
    }
    Ok(())
}

fn too_large(text: &str, most: &'static str) -> UnitError {
    let text = text.into();
    UnitError::TooLarge { text, most }
}

fn out_of_range(text: &str, range: &'static str) -> UnitError {
    let text = text.into();
    UnitError::OutOfRange { text, range }
}

fn not_plain(text: &str, example: &'static str) -> UnitError {
    let text = text.into();
    UnitError::NotAPlainNumber { text, example }
}

/// A family of units: names with their sizes in base units, and texts for messages.
struct Family {
    units: &'static [(&'static str, u128)],
    /// Units suggested for a number without one.
    usual: &'static [&'static str],
    example: &'static str,
    known: &'static str,
    step: &'static str,
    most: &'static str,
    most_value: u64,
}

const TIME: Family = Family {
    units: &[
        ("ns", 1),
        ("nsec", 1),
        ("nsecs", 1),
        ("us", 1_000),
        ("usec", 1_000),
        ("usecs", 1_000),
        ("ms", 1_000_000),
        ("msec", 1_000_000),
        ("msecs", 1_000_000),
        ("s", 1_000_000_000),
        ("sec", 1_000_000_000),
        ("secs", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
    usual: &["ms", "s"],
    example: "20ms",
    known: "times are in ns, us, ms, s, min or h",
    step: "1ns",
    most: "24h",
    most_value: 86_400_000_000_000,
};

const RATE: Family = Family {
    units: &[
        ("bit", 1),
        ("kbit", 1_000),
        ("mbit", 1_000_000),
        ("gbit", 1_000_000_000),
        ("tbit", 1_000_000_000_000),
        ("kibit", 1 << 10),
        ("mibit", 1 << 20),
        ("gibit", 1 << 30),
        ("bps", 8),
        ("kbps", 8_000),
        ("mbps", 8_000_000),
        ("gbps", 8_000_000_000),
    ],
    usual: &["mbit", "kbit"],
    example: "10mbit",
    known: "rates are in bit, kbit, mbit, gbit or tbit per second (kbps and mbps are bytes per second, as in tc)",
    step: "1bit",
    most: "10tbit",
    most_value: BitRate::MAX.bits_per_sec(),
};

const SIZE: Family = Family {
    units: &[
        ("b", 1),
        ("k", 1 << 10),
        ("kb", 1 << 10),
        ("m", 1 << 20),
        ("mb", 1 << 20),
        ("g", 1 << 30),
        ("gb", 1 << 30),
    ],
    usual: &["kb", "b"],
    example: "64kb",
    known: "sizes are in b, kb, mb or gb (bytes; kb is 1024, as in tc)",
    step: "1b",
    most: "1024gb",
    most_value: Bytes::SETTING_MAX.0,
};

const PACKETS: Family = Family {
    units: &[("p", 1), ("pkt", 1), ("packets", 1)],
    usual: &["p"],
    example: "100p",
    known: "packets are written 100p",
    step: "1p",
    most: "1000000000p",
    most_value: 1_000_000_000,
};

/// Base unit: 0.001 packets/s.
const PACKET_RATE: Family = Family {
    units: &[
        ("pps", 1_000),
        ("kpps", 1_000_000),
        ("mpps", 1_000_000_000),
        ("gpps", 1_000_000_000_000),
    ],
    usual: &["pps", "kpps"],
    example: "100kpps",
    known: "packet rates are in pps, kpps, mpps or gpps",
    step: "0.001pps",
    most: "1gpps",
    most_value: PacketRate::MAX.0,
};

/// Base unit: 10^-9.
const SPEED: Family = Family {
    units: &[("x", 1_000_000_000), ("%", 10_000_000)],
    usual: &["x"],
    example: "2x",
    known: "speeds are written 2x, 0.5x or 50%",
    step: "0.000000001x",
    most: "1000000x",
    most_value: Speed::MAX.0,
};

/// Base unit: 10^-14.
const PROBABILITY: Family = Family {
    units: &[("%", 1_000_000_000_000)],
    usual: &["%"],
    example: "1%",
    known: "probabilities are in %",
    step: "0.000000000001%",
    most: "100%",
    most_value: 100_000_000_000_000,
};

impl Family {
    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        refuse_negative(text)?;
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
        let (text, unit) = (text.to_string(), unit.to_ascii_lowercase());
        let (units, example, known) = (self.usual, self.example, self.known);
        let Some(decimal) = Decimal::read(digits) else {
            return Err(UnitError::NotANumber { text, example });
        };
        if unit.is_empty() {
            return Err(UnitError::MissingUnit { text, units });
        }
        let Some((_, scale)) = self.units.iter().find(|(name, _)| *name == unit) else {
            return Err(UnitError::UnknownUnit { text, unit, known });
        };
        let value = decimal.and_then(|decimal| decimal.times(*scale));
        let (step, most) = (self.step, self.most);
        match value.map(u64::try_from) {
            Ok(Ok(value)) if value <= self.most_value => Ok(value),
            Err(Unfit::TooFine) => Err(UnitError::TooFine { text, step }),
            Ok(_) | Err(Unfit::TooLarge | Unfit::NotANumber) => {
                Err(UnitError::TooLarge { text, most })
            }
        }
    }
}

impl FromStr for Nanos {
    type Err = UnitError;

    /// Parses `20ms`, `1.5s`, `250us`, `10ns`; at most 24h.
    fn from_str(text: &str) -> Result<Nanos, UnitError> {
        // Zero is unambiguous without a unit.
        if text == "0" {
            return Ok(Nanos::ZERO);
        }
        TIME.parse(text).map(Nanos)
    }
}

impl FromStr for BitRate {
    type Err = UnitError;

    /// Parses `10mbit`, `1.5gbit`; from 1 bit/s to 10 Tbit/s.
    fn from_str(text: &str) -> Result<BitRate, UnitError> {
        let bits = NonZeroU64::new(RATE.parse(text)?);
        let bits = bits.ok_or_else(|| UnitError::ZeroRate { text: text.into() })?;
        Ok(BitRate(bits))
    }
}

impl BitRate {
    /// Returns a warning about rates such as `10mbps`: elsewhere, bps means bits per second, but
    /// Longwire, like tc, reads bytes. `10MBps` is unambiguous.
    #[must_use]
    pub fn doubt(text: &str) -> Option<String> {
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let number = &text[..text.len() - unit.len()];
        let prefix = unit.strip_suffix("bps")?.to_ascii_lowercase();
        let rate = text.parse::<BitRate>().ok()?;
        Some(format!(
            "{text} is {rate}: as in tc, bps means bytes per second; write {number}{prefix}bit for \
             bits, or {rate} for bytes"
        ))
    }
}

impl FromStr for Bytes {
    type Err = UnitError;

    /// Parses `1500b`, `64kb`, `1mb`; a kilobyte is 1024 bytes.
    fn from_str(text: &str) -> Result<Bytes, UnitError> {
        SIZE.parse(text).map(Bytes)
    }
}

impl FromStr for Packets {
    type Err = UnitError;

    /// Parses `100p`.
    fn from_str(text: &str) -> Result<Packets, UnitError> {
        PACKETS.parse(text).map(Packets)
    }
}

impl FromStr for PacketRate {
    type Err = UnitError;

    /// Parses `100kpps`, `1.5mpps`, `0.5pps`; from 0.001pps to 1gpps.
    fn from_str(text: &str) -> Result<PacketRate, UnitError> {
        match PACKET_RATE.parse(text)? {
            0 => Err(out_of_range(text, "0.001pps to 1gpps")),
            milli => Ok(PacketRate(milli)),
        }
    }
}

impl FromStr for Speed {
    type Err = UnitError;

    /// Parses `2x`, `0.1x`, `150%`; from 0.000000001x to 1000000x.
    fn from_str(text: &str) -> Result<Speed, UnitError> {
        match SPEED.parse(text)? {
            0 => Err(out_of_range(text, "0.000000001x to 1000000x")),
            billionths => Ok(Speed(billionths)),
        }
    }
}

impl FromStr for Probability {
    type Err = UnitError;

    /// Parses `1%`, `0.05%`, `100%`; `0` needs no unit.
    fn from_str(text: &str) -> Result<Probability, UnitError> {
        if text == "0" {
            return Ok(Probability::ZERO);
        }
        let steps = PROBABILITY.parse(text)?;
        // The maximum of the family is probability 1.
        Ok(Probability::from_ratio(steps, PROBABILITY.most_value).unwrap_or(Probability::ONE))
    }
}

impl FromStr for Correlation {
    type Err = UnitError;

    /// Parses `25%`, `-10%`; `0` needs no unit.
    fn from_str(text: &str) -> Result<Correlation, UnitError> {
        let size = text.strip_prefix('-').unwrap_or(text);
        let size: Probability = size.parse()?;
        Ok(Correlation {
            negative: text.starts_with('-') && size != Probability::ZERO,
            size,
        })
    }
}

/// Parses a natural number without a unit, such as `1000` or `1e3`.
///
/// # Errors
/// [`UnitError::Negative`] below 0, [`UnitError::TooLarge`] above 2^64 − 1,
/// [`UnitError::NotAPlainNumber`] for a fraction or other text.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    refuse_negative(text)?;
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // The standard parser accepts a plus sign.
    let value = match text.split_once(['e', 'E']) {
        None if is_digits(text) => text.parse().map_err(|_| Unfit::TooLarge),
        Some((number, exponent)) if is_digits(exponent) => match Decimal::read(number) {
            Some(number) => number.and_then(|number| number.times_power(exponent)),
            None => Err(Unfit::NotANumber),
        },
        _ => Err(Unfit::NotANumber),
    };
    value.map_err(|unfit| match unfit {
        Unfit::TooLarge => too_large(text, "18446744073709551615"),
        Unfit::TooFine | Unfit::NotANumber => not_plain(text, "1000"),
    })
}

/// Parses a ratio from 0 to 1, such as the bit error rate `1e-6`.
///
/// # Errors
/// [`UnitError::Negative`] below 0, [`UnitError::TooLarge`] above 1, [`UnitError::NotAPlainNumber`]
/// for other text.
pub fn parse_ratio(text: &str) -> Result<f64, UnitError> {
    refuse_negative(text)?;
    // The standard parser accepts "inf", "nan" and a plus sign.
    match text.parse::<f64>() {
        Ok(value) if starts_a_number(text) && value > 1.0 => Err(too_large(text, "1")),
        Ok(value) if starts_a_number(text) => Ok(value),
        _ => Err(not_plain(text, "1e-6")),
    }
}

/// Parses an integer, such as `-4`.
///
/// # Errors
/// [`UnitError::TooLarge`] if it exceeds `i64`, [`UnitError::NotAPlainNumber`] for a fraction or
/// other text.
pub fn parse_signed(text: &str) -> Result<i64, UnitError> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit()) {
        return Err(not_plain(text, "-4"));
    }
    let value = text.parse();
    value.map_err(|_| too_large(text, "9223372036854775807"))
}

/// Parses a finite number, such as `1.5` or `-2e3`.
///
/// # Errors
/// [`UnitError::NotAPlainNumber`] for other text.
pub fn parse_real(text: &str) -> Result<f64, UnitError> {
    // The standard parser accepts "inf", "nan" and a plus sign.
    let digits = text.strip_prefix('-').unwrap_or(text);
    match text.parse::<f64>() {
        Ok(value) if starts_a_number(digits) && value.is_finite() => Ok(value),
        _ => Err(not_plain(text, "1.5")),
    }
}
