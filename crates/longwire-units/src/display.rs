//! Formats units as text that parses to the same value.

use core::fmt;

use super::{BitRate, Bytes, Correlation, Nanos, PacketRate, Packets, Probability, Speed};

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Nanos::MAX {
            return f.write_str("never");
        }
        write_scaled(
            f,
            self.0,
            &[
                (1_000_000_000, "s"),
                (1_000_000, "ms"),
                (1_000, "us"),
                (1, "ns"),
            ],
        )
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SCALES: [(u64, &str); 5] = [
            (1_000_000_000_000, "tbit"),
            (1_000_000_000, "gbit"),
            (1_000_000, "mbit"),
            (1_000, "kbit"),
            (1, "bit"),
        ];
        write_scaled(f, self.bits_per_sec(), &SCALES)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SCALES: [(u64, &str); 4] =
            [(1 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb"), (1, "b")];
        // Whole multiples only: fractions of a power of two have no short decimal form.
        let (scale, unit) = SCALES
            .into_iter()
            .find(|(scale, _)| self.0 >= *scale && self.0.is_multiple_of(*scale))
            .unwrap_or((1, "b"));
        write!(f, "{}{unit}", self.0 / scale)
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}p", self.0)
    }
}

impl fmt::Display for PacketRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SCALES: [(u64, &str); 4] = [
            (1_000_000_000_000, "gpps"),
            (1_000_000_000, "mpps"),
            (1_000_000, "kpps"),
            (1_000, "pps"),
        ];
        write_scaled(f, self.0, &SCALES)
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, &[(Speed::UNCHANGED.0, "x")])
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounds to the parser's resolution. 2^-64 is much finer, so parsed decimals are restored
        // exactly.
        let steps = if self.certain {
            STEPS
        } else {
            let scaled = u128::from(self.threshold) * u128::from(STEPS);
            ((scaled + (1 << 63)) >> 64) as u64
        };
        write_scaled(f, steps, &[(STEPS / 100, "%")])
    }
}

impl fmt::Display for Correlation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.negative { "-" } else { "" })?;
        self.size.fmt(f)
    }
}

/// Probability 1 in steps of the parser's resolution, 10^-12 %.
const STEPS: u64 = 100_000_000_000_000;

/// Formats `value` exactly, in the largest unit that does not exceed it.
fn write_scaled(f: &mut fmt::Formatter<'_>, value: u64, scales: &[(u64, &str)]) -> fmt::Result {
    let (scale, unit) = scales
        .iter()
        .find(|(scale, _)| value >= *scale)
        .or(scales.last())
        .copied()
        .unwrap_or((1, ""));
    let (whole, mut rest) = (value / scale, value % scale);
    write!(f, "{whole}")?;
    if rest > 0 {
        f.write_str(".")?;
        let mut place = scale / 10;
        while rest > 0 {
            write!(f, "{}", rest / place)?;
            rest %= place;
            place /= 10;
        }
    }
    f.write_str(unit)
}
