//! Payload of generated frames.

use std::fmt;
use std::str::FromStr;

use super::error::{GeneratorError, PAYLOAD_MAX, refused};

/// Payload of generated frames, after the probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// Zeros.
    #[default]
    Zeros,
    /// Counting bytes: 0, 1, 2, … 255, 0, …
    Counting,
    /// Random bytes, identical in every frame.
    Random,
    /// A repeated pattern; not empty.
    Pattern(Vec<u8>),
}

impl FromStr for Payload {
    type Err = GeneratorError;

    /// Parses `zeros`, `counting`, `random`, or hexadecimal bytes.
    fn from_str(text: &str) -> Result<Payload, GeneratorError> {
        let wrong = "not a payload";
        let refused = || refused(text, wrong, "zeros, counting, random or 0xdeadbeef");
        match text {
            "zeros" => return Ok(Payload::Zeros),
            "counting" => return Ok(Payload::Counting),
            "random" => return Ok(Payload::Random),
            _ => {}
        }
        let digits = text.strip_prefix("0x").ok_or_else(refused)?.as_bytes();
        if digits.is_empty() || !digits.len().is_multiple_of(2) || digits.len() > 2 * PAYLOAD_MAX {
            return Err(refused());
        }
        let bytes = digits.chunks(2).map(|pair| {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8)
        });
        let bytes: Option<Vec<u8>> = bytes.collect();
        bytes.map(Payload::Pattern).ok_or_else(refused)
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Payload::Zeros => f.write_str("zeros"),
            Payload::Counting => f.write_str("counting"),
            Payload::Random => f.write_str("random"),
            Payload::Pattern(bytes) => {
                f.write_str("0x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}
