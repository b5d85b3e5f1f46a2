//! Reading units as `tc` writes them: `10mbit`, `1.5gbit`, `20ms`, `64kb`,
//! `100p`, `1%`.
//!
//! Numbers are decimal and exact: `1.5gbit` is 1,500,000,000 bit/s, and
//! `0.3ns` is refused rather than rounded. A unit is never guessed.

use alloc::string::{String, ToString};
use core::str::FromStr;

use super::{BitRate, Bytes, Nanos, Packets, Probability};

/// Why a value with a unit was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum UnitError {
    #[error("'{text}' is not a number with a unit; write for example {example}")]
    NotANumber { text: String, example: &'static str },
    #[error("'{text}' has no unit; write for example {example}")]
    MissingUnit { text: String, example: &'static str },
    #[error("'{text}': unknown unit '{unit}'; {known}")]
    UnknownUnit {
        text: String,
        unit: String,
        known: &'static str,
    },
    #[error("'{text}' is negative; the least is 0")]
    Negative { text: String },
    #[error("'{text}' is finer than {step}, the least step")]
    TooFine { text: String, step: &'static str },
    #[error("'{text}' is too large; the most is {most}")]
    TooLarge { text: String, most: &'static str },
    #[error("'{text}' is zero; leave the option out for an unlimited rate")]
    ZeroRate { text: String },
}

/// A decimal number taken apart: `digits` × 10^-`decimals`.
struct Decimal {
    digits: u128,
    decimals: u32,
}

impl Decimal {
    /// Times `scale`, if that is a whole number that fits.
    fn times(&self, scale: u128) -> Result<Option<u128>, ()> {
        let scaled = self.digits.checked_mul(scale).ok_or(())?;
        let divisor = 10u128.pow(self.decimals);
        Ok(scaled.is_multiple_of(divisor).then(|| scaled / divisor))
    }
}

/// Splits `text` into its number and its unit (in lower case).
fn split(text: &str, example: &'static str) -> Result<(Decimal, String), UnitError> {
    let not_a_number = || UnitError::NotANumber {
        text: text.to_string(),
        example,
    };
    if text.starts_with('-') {
        return Err(UnitError::Negative {
            text: text.to_string(),
        });
    }
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // 18 + 12 digits keep every product below within 128 bits.
    if whole.len() + fraction.len() == 0 || whole.len() > 18 || fraction.len() > 12 {
        return Err(not_a_number());
    }
    let mut digits = 0u128;
    for c in whole.chars().chain(fraction.chars()) {
        let digit = c.to_digit(10).ok_or_else(not_a_number)?;
        digits = digits * 10 + u128::from(digit);
    }
    let decimal = Decimal {
        digits,
        decimals: fraction.len() as u32,
    };
    Ok((decimal, unit.to_ascii_lowercase()))
}

/// One family of units: name, how many base units it is, and its messages.
struct Family {
    units: &'static [(&'static str, u128)],
    example: &'static str,
    known: &'static str,
    step: &'static str,
    most: &'static str,
    most_value: u64,
}

impl Family {
    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let (number, unit) = split(text, self.example)?;
        if unit.is_empty() {
            return Err(UnitError::MissingUnit {
                text: text.to_string(),
                example: self.example,
            });
        }
        let Some((_, scale)) = self.units.iter().find(|(name, _)| *name == unit) else {
            return Err(UnitError::UnknownUnit {
                text: text.to_string(),
                unit,
                known: self.known,
            });
        };
        let too_large = || UnitError::TooLarge {
            text: text.to_string(),
            most: self.most,
        };
        let value = number.times(*scale).map_err(|()| too_large())?;
        let value = value.ok_or_else(|| UnitError::TooFine {
            text: text.to_string(),
            step: self.step,
        })?;
        match u64::try_from(value) {
            Ok(value) if value <= self.most_value => Ok(value),
            _ => Err(too_large()),
        }
    }
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
    example: "10mbit",
    known: "rates are in bit, kbit, mbit, gbit or tbit a second (as in tc, kbps and mbps are bytes)",
    step: "1bit",
    most: "10tbit",
    most_value: BitRate::MAX.0,
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
    example: "64kb",
    known: "sizes are in b, kb, mb or gb (bytes; as in tc, kb is 1024)",
    step: "1b",
    most: "1024gb",
    most_value: 1 << 40,
};

const PACKETS: Family = Family {
    units: &[("p", 1), ("pkt", 1), ("packets", 1)],
    example: "100p",
    known: "packets are written 100p",
    step: "1p",
    most: "1000000000p",
    most_value: 1_000_000_000,
};

impl FromStr for Nanos {
    type Err = UnitError;

    /// `20ms`, `1.5s`, `250us`, `10ns`; at most 24h.
    fn from_str(text: &str) -> Result<Nanos, UnitError> {
        // Zero needs no unit to be clear.
        if text == "0" {
            return Ok(Nanos::ZERO);
        }
        TIME.parse(text).map(Nanos)
    }
}

impl FromStr for BitRate {
    type Err = UnitError;

    /// `10mbit`, `1.5gbit`; from 1 bit/s to 10 Tbit/s.
    fn from_str(text: &str) -> Result<BitRate, UnitError> {
        match RATE.parse(text)? {
            0 => Err(UnitError::ZeroRate {
                text: text.to_string(),
            }),
            bits => Ok(BitRate(bits)),
        }
    }
}

impl FromStr for Bytes {
    type Err = UnitError;

    /// `1500b`, `64kb`, `1mb`; a kilobyte is 1024 bytes, as in `tc`.
    fn from_str(text: &str) -> Result<Bytes, UnitError> {
        SIZE.parse(text).map(Bytes)
    }
}

impl FromStr for Packets {
    type Err = UnitError;

    /// `100p`.
    fn from_str(text: &str) -> Result<Packets, UnitError> {
        PACKETS.parse(text).map(Packets)
    }
}

impl FromStr for Probability {
    type Err = UnitError;

    /// `1%`, `0.05%`, `100%`; `0` needs no unit.
    fn from_str(text: &str) -> Result<Probability, UnitError> {
        const EXAMPLE: &str = "1%";
        if text == "0" {
            return Ok(Probability::ZERO);
        }
        let (number, unit) = split(text, EXAMPLE)?;
        match unit.as_str() {
            "%" => {}
            "" => {
                return Err(UnitError::MissingUnit {
                    text: text.to_string(),
                    example: EXAMPLE,
                });
            }
            _ => {
                return Err(UnitError::UnknownUnit {
                    text: text.to_string(),
                    unit,
                    known: "probabilities are in %",
                });
            }
        }
        let denominator = 100 * 10u128.pow(number.decimals);
        if number.digits > denominator {
            return Err(UnitError::TooLarge {
                text: text.to_string(),
                most: "100%",
            });
        }
        // At most 12 decimals: both numbers fit 64 bits.
        Ok(Probability::from_ratio(number.digits as u64, denominator as u64)
            .unwrap_or(Probability::ONE))
    }
}

/// A plain count without a unit, such as `1000`.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    if text.starts_with('-') {
        return Err(UnitError::Negative {
            text: text.to_string(),
        });
    }
    text.parse().map_err(|_| UnitError::NotANumber {
        text: text.to_string(),
        example: "1000",
    })
}

/// A bare ratio from 0 to 1, such as a bit error rate of `1e-6`.
pub fn parse_ratio(text: &str) -> Result<f64, UnitError> {
    const EXAMPLE: &str = "1e-6";
    let value: f64 = text.parse().map_err(|_| UnitError::NotANumber {
        text: text.to_string(),
        example: EXAMPLE,
    })?;
    if value < 0.0 {
        return Err(UnitError::Negative {
            text: text.to_string(),
        });
    }
    if value > 1.0 {
        return Err(UnitError::TooLarge {
            text: text.to_string(),
            most: "1",
        });
    }
    if value.is_nan() {
        return Err(UnitError::NotANumber {
            text: text.to_string(),
            example: EXAMPLE,
        });
    }
    Ok(value)
}
