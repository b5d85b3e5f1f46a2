//! Exact decimal numbers, such as those in traces.

use alloc::format;
use alloc::string::String;

/// Maximum number of significant digits; 19 digits fit in 64 bits. Further digits are below the
/// resolution of times and rates.
const DIGITS_MAX: u32 = 19;

/// Parses a decimal number such as `12`, `0.5791` or `1e-3`, multiplies it by `multiplier`, and
/// rounds half up to an integer.
///
/// # Errors
/// If the text is not a finite number or is negative, or the result exceeds 64 bits.
pub fn scaled(text: &str, multiplier: u64) -> Result<u64, String> {
    let Some(decimal) = DecimalText::read(text) else {
        let shown: String = text.chars().take(40).collect();
        return Err(match text.strip_prefix('-').and_then(DecimalText::read) {
            Some(_) => format!("'{shown}' is negative"),
            None => format!("'{shown}' is not a number"),
        });
    };
    decimal
        .times(multiplier)
        .ok_or_else(|| format!("'{text}' is too large"))
}

/// `mantissa` × 10^`exponent`.
struct DecimalText {
    mantissa: u64,
    exponent: i32,
}

impl DecimalText {
    fn read(text: &str) -> Option<DecimalText> {
        let bytes = text.as_bytes();
        let (mut mantissa, mut exponent, mut digits) = (0u64, 0i32, 0u32);
        let (mut seen, mut point) = (false, false);
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'0'..=b'9' => {
                    seen = true;
                    if digits < DIGITS_MAX {
                        mantissa = mantissa * 10 + u64::from(byte - b'0');
                        digits += u32::from(mantissa > 0);
                        exponent -= i32::from(point);
                    } else {
                        exponent = exponent.saturating_add(i32::from(!point));
                    }
                }
                b'.' if !point => point = true,
                _ => break,
            }
            at += 1;
        }
        if !seen {
            return None;
        }
        if at < bytes.len() {
            exponent = exponent.saturating_add(read_exponent(&bytes[at..])?);
        }
        Some(DecimalText { mantissa, exponent })
    }

    fn times(&self, multiplier: u64) -> Option<u64> {
        if self.mantissa == 0 {
            return Some(0);
        }
        if self.exponent >= 0 {
            let power = 10u64.checked_pow(self.exponent.unsigned_abs())?;
            return self.mantissa.checked_mul(power)?.checked_mul(multiplier);
        }
        let decimals = self.exponent.unsigned_abs();
        if let (Some(product), true) = (self.mantissa.checked_mul(multiplier), decimals <= 18) {
            let divisor = 10u64.pow(decimals);
            let (quotient, rest) = (product / divisor, product % divisor);
            return Some(quotient + u64::from(rest >= divisor.div_ceil(2)));
        }
        let product = u128::from(self.mantissa) * u128::from(multiplier);
        // Rounds to zero: 10^39 exceeds 128 bits and is more than twice any product.
        let Some(divisor) = 10u128.checked_pow(decimals) else {
            return Some(0);
        };
        let (quotient, rest) = (product / divisor, product % divisor);
        let rounded = quotient + u128::from(rest >= divisor.div_ceil(2));
        u64::try_from(rounded).ok()
    }
}

/// Parses an exponent such as `e-3` or `E+06`.
fn read_exponent(bytes: &[u8]) -> Option<i32> {
    let digits = match bytes {
        [b'e' | b'E', b'+' | b'-', digits @ ..] | [b'e' | b'E', digits @ ..] => digits,
        _ => return None,
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let magnitude = digits.iter().fold(0i32, |value, digit| {
        value
            .saturating_mul(10)
            .saturating_add(i32::from(digit - b'0'))
    });
    // The limit exceeds any exponent of a representable number, and adding it cannot overflow.
    let sign = if bytes[1] == b'-' { -1 } else { 1 };
    Some(sign * magnitude.min(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_and_rounded_to_the_nearest() {
        for (text, multiplier, value) in [
            ("0", 1_000_000_000, 0),
            ("12", 1_000_000, 12_000_000),
            ("0.579321146011", 1_000_000_000, 579_321_146),
            ("1.5e3", 1_000, 1_500_000),
            ("1.5E-3", 1_000_000, 1_500),
            ("2e+0", 1, 2),
            ("0.0000000005", 1_000_000_000, 1),
            ("0.00000000049", 1_000_000_000, 0),
            (
                "1570000000.1234567891",
                1_000_000_000,
                1_570_000_000_123_456_789,
            ),
            ("000000000000000000000000000007.5", 10, 75),
            (".5", 2, 1),
            ("5.", 2, 10),
            ("1e-1000000000000", 1_000_000_000, 0),
            ("0e99999999999", 1, 0),
        ] {
            assert_eq!(scaled(text, multiplier), Ok(value), "{text}");
        }
    }

    #[test]
    fn invalid_numbers_are_refused() {
        for text in [
            "", ".", "-", "e5", "1e", "1e+", "1.2.3", "nan", "inf", "+1", "0x10", "1 2",
        ] {
            let message = scaled(text, 1).unwrap_err();
            assert!(message.ends_with("is not a number"), "{message}");
        }
        assert_eq!(scaled("-1", 1).unwrap_err(), "'-1' is negative");
        for text in "1e20 184467440737095516160 1e99999999999 20000000000".split(' ') {
            let message = scaled(text, 1_000_000_000).unwrap_err();
            assert!(message.ends_with("is too large"), "{message}");
        }
    }
}
